#include "comm/run_agreed.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "comm/communicator.h"
#include "comm/gather.h"
#include "comm/mpi/mpi_call.h"

namespace lockstep {
namespace {

constexpr size_t longest_message = 64 << 10;

std::optional<std::string> failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const PeerFailure&) {
    throw;
  } catch (const std::exception& error) {
    return std::string(error.what()).substr(0, longest_message);
  }
  return std::nullopt;
}

void throw_agreed(const std::vector<std::optional<std::string>>& failures) {
  if (const auto text = agreed_failure(failures)) throw PoliteError(*text);
}

}  // namespace

std::optional<std::string> agreed_failure(const std::vector<std::optional<std::string>>& failures) {
  const auto first = std::find_if(failures.begin(), failures.end(), [](const auto& f) { return f.has_value(); });
  if (first == failures.end()) return std::nullopt;
  const bool all_equal = std::all_of(failures.begin(), failures.end(), [&](const auto& f) { return f == *first; });
  return all_equal ? **first : fmt::format("rank {}: {}", first - failures.begin(), **first);
}

void run_agreed(MPI_Comm comm, const std::function<void()>& work) {
  const auto mine = failure_of(work);
  const int size = mpi::size(comm);
  int length = mine ? static_cast<int>(mine->size()) : -1;
  std::vector<int> lengths(size);
  mpi::check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm), "MPI_Allgather");
  std::vector<std::optional<std::string>> failures(size);
  if (*std::max_element(lengths.begin(), lengths.end()) < 0) return;
  for (int r = 0; r < size; ++r) {
    if (lengths[r] < 0) continue;
    failures[r] = length >= 0 && r == mpi::rank(comm) ? *mine : std::string(static_cast<size_t>(lengths[r]), ' ');
    mpi::check(MPI_Bcast(failures[r]->data(), lengths[r], MPI_CHAR, r, comm), "MPI_Bcast");
  }
  throw_agreed(failures);
}

void run_agreed(Communicator& comm, const std::function<void()>& work) {
  const auto mine = failure_of(work);
  const std::string tagged = mine ? "!" + *mine : "";  // empty: this rank is well
  std::vector<std::optional<std::string>> failures;
  for (const std::string& theirs : gather_texts(tagged, comm))
    failures.push_back(theirs.empty() ? std::nullopt : std::optional(theirs.substr(1)));
  throw_agreed(failures);
}

}  // namespace lockstep

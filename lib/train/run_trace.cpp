#include "train/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "comm/gather.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/log.h"
#include "train/checkpoint/new_file.h"
#include "train/doctor/machine.h"
#include "train/trace_text.h"

namespace lockstep {
namespace {

constexpr const char *kName = "trace.json", *kGrowing = "trace.json.tmp";
constexpr size_t kPiece = size_t{1} << 20;  // bytes that travel at once

// Of a rank, for rank 0.
struct Share {
  uint64_t bytes;
  int64_t events, lost, clock_error;
};

std::string clocks_text(std::span<const Share> shares) {
  const int64_t error = std::ranges::max(shares, {}, &Share::clock_error).clock_error;
  return error == 0 ? "one for all ranks"
                    : fmt::format("within {:.1f} us of rank 0's", static_cast<double>(error) / 1e3);
}

}  // namespace

void RunTrace::check(int64_t total_steps) const {
  if (first_ >= total_steps)
    throw_error(
        "log.trace: steps {} to {} are to be traced, but the run has {}, of which the first is 0: write --trace={}-{}",
        first_, last_, total_steps, total_steps / 2, std::max<int64_t>(total_steps, 1) - 1);
}

void RunTrace::begin(int64_t step) {
  from_ = step;
  std::error_code stays;  // then its place is taken, which end() tells
  if (ranks_.rank() == 0) std::filesystem::remove(dir_ + "/" + kName, stays);  // that of an earlier run
  begun_ = trace_now();
  for (TraceRow* row : {&compute_, &communication_, &loader_}) row->start();
}

void RunTrace::end() {
  if (done_) return;
  done_ = true;
  if (from_ < 0) return log::info("no trace: none of the steps {} to {} was made", first_, last_);
  for (TraceRow* row : {&compute_, &communication_, &loader_}) row->stop();
  const uint64_t doing = ranks_.activity().word();
  ranks_.activity().saving(to_);
  const ClockOffset clock = align_clocks(ranks_, trace_now, monotonic_clock());
  std::string own = own_text(clock);

  Share share{.bytes = own.size(), .events = 0, .lost = 0, .clock_error = clock.error};
  for (const TraceRow* row : {&compute_, &communication_, &loader_}) {
    share.events += static_cast<int64_t>(row->events().size());
    share.lost += row->lost();
  }
  const std::vector<Share> shares = gather_values<Share>({&share, 1}, ranks_);
  std::vector<uint64_t> bytes;
  int64_t events = 0;
  for (const Share& each : shares) bytes.push_back(each.bytes), events += each.events;
  const std::string failure = write(std::move(own), bytes, clocks_text(shares));
  ranks_.activity().set_word(doing);
  if (ranks_.rank() != 0) return;
  if (!failure.empty()) return log::warning("log.trace: {}; training goes on without it", failure);
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    if (shares[rank].lost > 0)
      log::warning("log.trace: no room for {} events of rank {}, the last ones are missing: trace fewer steps",
                   shares[rank].lost, rank);
  }
  log::info("{}/{}: steps {} to {}, {} events, clocks {}; to be opened at https://ui.perfetto.dev", dir_, kName, from_,
            to_, events, clocks_text(shares));
}

// From the first rank's beginning on, in rank 0's time.
std::string RunTrace::own_text(const ClockOffset& clock) {
  int64_t origin = begun_;
  ranks_.broadcast(std::as_writable_bytes(std::span(&origin, 1)), 0);
  auto earliest = static_cast<double>(begun_ + clock.offset - origin);
  ranks_.all_reduce({&earliest, 1}, ReduceOp::min);
  const TracedRow rows[] = {
      {"compute", compute_.events()}, {"communication", communication_.events()}, {"loader", loader_.events()}};
  return trace_text({.rank = ranks_.rank(),
                     .host = cpu_facts().host,
                     .shift = clock.offset - origin - static_cast<int64_t>(earliest),
                     .clock = clock.error == 0 ? ""
                                               : fmt::format("clock within {:.1f} us of rank 0's",
                                                             static_cast<double>(clock.error) / 1e3)},
                    rows);
}

// Rank 0 writes what each rank in turn tells to all of them, so nobody holds more than its own. Returns what went wrong
// there, else nothing; the file has its name when it is whole.
std::string RunTrace::write(std::string own, std::span<const uint64_t> bytes, const std::string& clocks) {
  std::string failure;
  std::optional<Directory> folder;
  std::optional<NewFile> file;
  const auto attempt = [&](const std::function<void()>& work) {
    if (ranks_.rank() != 0 || !failure.empty()) return;
    try {
      const FileLimitIsError limit;
      work();
    } catch (const Error& error) {
      failure = error.what();
    }
  };
  attempt([&] {
    folder = Directory::open(dir_);
    folder->remove(kGrowing);
    file.emplace(*folder, kGrowing);
    file->write(as_bytes(trace_head()));
  });
  std::string piece;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    for (size_t at = 0; at < bytes[static_cast<size_t>(rank)]; at += kPiece) {
      const size_t count = std::min(kPiece, static_cast<size_t>(bytes[static_cast<size_t>(rank)]) - at);
      piece.resize(count);
      if (rank == ranks_.rank()) piece.assign(own, at, count);
      ranks_.broadcast(std::as_writable_bytes(std::span(piece)), rank);
      attempt([&] {
        if (rank > 0 && at == 0) file->write(as_bytes(",\n"));
        file->write(as_bytes(piece));
      });
    }
  }
  attempt([&] {
    const std::pair<std::string, std::string> about[] = {{"program", build_info()},
                                                         {"steps", fmt::format("{} to {}", from_, to_)},
                                                         {"ranks", fmt::format("{}", ranks_.size())},
                                                         {"communicator", std::string(ranks_.name())},
                                                         {"clocks", clocks}};
    file->write(as_bytes(trace_tail(about)));
    file->finish();
    folder->rename(kGrowing, kName);
  });
  std::error_code gone;
  if (!failure.empty()) std::filesystem::remove(dir_ + "/" + kGrowing, gone);
  return failure;
}

}  // namespace lockstep

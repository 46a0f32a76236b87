#include "train/own_data.h"

#include <cstring>

#include "core/error.h"

namespace lockstep {
namespace {

// "samples [4] with labels of 3 classes"
std::string describe(const Dataset& dataset) {
  const std::string targets = dataset.target_kind() == TargetKind::labels
                                  ? fmt::format("labels of {} classes", dataset.classes())
                                  : fmt::format("{} values as target", dataset.target_width());
  return fmt::format("samples {} with {}", dataset.sample_shape().str(), targets);
}

}  // namespace

std::vector<int64_t> own_sizes(const std::string& what, const Dataset& dataset, Communicator& communicator) {
  if (!dataset.per_rank()) return {};
  const int64_t size = dataset.size();
  const std::string kind = describe(dataset);
  std::vector<std::byte> mine(sizeof size + kind.size());
  std::memcpy(mine.data(), &size, sizeof size);
  std::memcpy(mine.data() + sizeof size, kind.data(), kind.size());

  std::vector<int64_t> sizes;
  std::string first;
  for (const auto& bytes : communicator.all_gather(mine)) {
    std::memcpy(&sizes.emplace_back(), bytes.data(), sizeof size);
    const std::string theirs(reinterpret_cast<const char*>(bytes.data()) + sizeof size, bytes.size() - sizeof size);
    if (sizes.size() == 1) first = theirs;
    if (theirs != first)
      throw_error(
          "{}: the ranks' own data sets are not of one kind: rank 0 has {}, rank {} {} ({}.classes fixes the "
          "number of classes)",
          what, first, sizes.size() - 1, theirs, what);
  }
  return sizes;
}

}  // namespace lockstep

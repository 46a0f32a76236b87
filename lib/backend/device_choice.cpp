#include "backend/device_choice.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/whole_number.h"

namespace lockstep {
namespace {

// Maximum matching of ranks and GPUs by augmenting paths. A free GPU is preferred to moving another rank, so that ranks
// with equal lists take them in order.
class Matching {
 public:
  explicit Matching(std::span<const std::vector<std::string>> visible) : visible_(visible), index_(visible.size(), -1) {
    for (size_t rank = 0; rank < visible.size(); ++rank) {
      std::map<std::string, bool> tried;
      place(rank, tried);
    }
  }
  int index(size_t rank) const { return index_[rank]; }

 private:
  bool place(size_t rank, std::map<std::string, bool>& tried) {
    const std::vector<std::string>& list = visible_[rank];
    for (size_t i = 0; i < list.size(); ++i)
      if (!owner_.contains(list[i])) return take(rank, i);
    for (size_t i = 0; i < list.size(); ++i) {
      if (std::exchange(tried[list[i]], true)) continue;
      if (place(owner_.at(list[i]), tried)) return take(rank, i);
    }
    return false;
  }
  bool take(size_t rank, size_t i) {
    owner_[visible_[rank][i]] = rank;
    index_[rank] = static_cast<int>(i);
    return true;
  }

  std::span<const std::vector<std::string>> visible_;
  std::vector<int> index_;               // by rank
  std::map<std::string, size_t> owner_;  // by UUID
};

// "2,GPU-5f3c" -> {"2", "GPU-5f3c"}
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::optional<int> find_gpu(std::string_view entry, std::span<const std::string> uuids) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
    const auto matches = [&](const std::string& uuid) { return uuid.starts_with(entry); };
    if (std::ranges::count_if(uuids, matches) != 1) return std::nullopt;  // none, or it may mean several
    return static_cast<int>(std::ranges::find_if(uuids, matches) - uuids.begin());
  }
  const auto index = whole_number<int>(entry);
  if (!index || *index < 0 || *index >= static_cast<int>(uuids.size())) return std::nullopt;
  return index;
}

}  // namespace

std::vector<DeviceChoice> choose_devices(std::span<const std::vector<std::string>> visible, bool oversubscribe) {
  const Matching matching(visible);
  std::vector<DeviceChoice> choices(visible.size());
  std::map<std::string, std::vector<size_t>> users;
  for (size_t rank = 0; rank < visible.size(); ++rank) {
    choices[rank].index = matching.index(rank);
    if (choices[rank].index >= 0) users[visible[rank][static_cast<size_t>(choices[rank].index)]].push_back(rank);
  }
  for (size_t rank = 0; rank < visible.size() && oversubscribe; ++rank) {
    if (choices[rank].index >= 0 || visible[rank].empty()) continue;
    const auto least =
        std::ranges::min_element(visible[rank], {}, [&](const std::string& uuid) { return users[uuid].size(); });
    choices[rank].index = static_cast<int>(least - visible[rank].begin());
    users[*least].push_back(rank);
  }
  for (const auto& [uuid, ranks] : users)
    for (const size_t rank : ranks) choices[rank].shared = ranks.size() > 1;
  return choices;
}

int pick_device(int local_rank, std::span<const std::vector<std::string>> visible, bool oversubscribe) {
  const size_t rank = static_cast<size_t>(local_rank);
  if (visible[rank].empty())
    throw_error("device.kind cuda: local rank {} sees no GPU; lockstep doctor says what it found", local_rank);
  const DeviceChoice choice = choose_devices(visible, oversubscribe)[rank];
  if (choice.index < 0)
    throw_error(
        "device.kind cuda: {} ranks on this node, but local rank {} sees {} GPU(s), all taken by other ranks: start as "
        "many ranks per node as GPUs, or set device.oversubscribe: true to let ranks share one",
        visible.size(), local_rank, visible[rank].size());
  return choice.index;
}

VisibleList visible_devices(const char* text, std::span<const std::string> uuids) {
  VisibleList list;
  if (text == nullptr) {
    for (size_t i = 0; i < uuids.size(); ++i) list.indices.push_back(static_cast<int>(i));
    return list;
  }
  if (std::string_view(text).find_first_not_of(' ') == std::string_view::npos) {
    list.problem = "CUDA_VISIBLE_DEVICES is empty, which hides every GPU";
    return list;
  }
  for (const std::string_view entry : split(text)) {
    const std::optional<int> index = find_gpu(entry, uuids);
    if (!index) {
      if (entry != "-1")
        list.problem = fmt::format(
            "CUDA_VISIBLE_DEVICES={}: '{}' is none of the {} GPU(s) here; it and all after it are "
            "hidden",
            text, entry, uuids.size());
      else if (list.indices.empty())
        list.problem = fmt::format("CUDA_VISIBLE_DEVICES={} hides every GPU", text);
      return list;
    }
    if (std::ranges::find(list.indices, *index) != list.indices.end()) {
      list.indices.clear();
      list.problem = fmt::format("CUDA_VISIBLE_DEVICES={} names a GPU twice, so CUDA shows none", text);
      return list;
    }
    list.indices.push_back(*index);
  }
  return list;
}

std::string shared_gpu_text(std::span<const PlacedGpu> gpus) {
  for (size_t i = 0; i < gpus.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (gpus[i].gpu.uuid != gpus[j].gpu.uuid) continue;
      return fmt::format("ranks {} and {} hold the same GPU, {} ({} on {})", gpus[j].rank, gpus[i].rank,
                         gpus[i].gpu.name, gpus[i].gpu.bus_id, gpus[i].host);
    }
  }
  return "";
}

}  // namespace lockstep

#include "train/doctor/control_group.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// "max", or version 1's huge number: no limit.
std::optional<uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  in >> text;
  uint64_t value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc() || value >= uint64_t{1} << 60) return std::nullopt;
  return value;
}

// Version 2: "0::/path"; version 1: "5:memory:/path". In a container the path may not exist below its own root, whose
// file then counts.
struct ControlGroup {
  fs::path mount, path;
  const char *limit, *used;
  // Of memory.stat: what is used by files' pages, which the kernel gives up before it ends anybody.
  std::array<const char*, 2> pages;
};

std::vector<ControlGroup> control_groups(const fs::path& root) {
  std::vector<ControlGroup> groups;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path path = fs::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,")
      groups.push_back(
          {root / "sys/fs/cgroup", path, "memory.max", "memory.current", {"active_file", "inactive_file"}});
    if (controllers.find(",memory,") != std::string::npos)
      groups.push_back({root / "sys/fs/cgroup/memory",
                        path,
                        "memory.limit_in_bytes",
                        "memory.usage_in_bytes",
                        {"total_active_file", "total_inactive_file"}});
  }
  return groups;
}

// The numbers behind these words, summed.
uint64_t sum_of_lines(const fs::path& file, const std::array<const char*, 2>& words) {
  std::ifstream in(file);
  uint64_t sum = 0, value = 0;
  for (std::string word; in >> word >> value;) {
    if (std::ranges::find(words, word) != words.end()) sum += value;
  }
  return sum;
}

}  // namespace

std::optional<uint64_t> control_group_limit(const fs::path& root) {
  std::optional<uint64_t> lowest;
  for (const ControlGroup& group : control_groups(root)) {
    for (fs::path path = group.path;; path = path.parent_path()) {
      if (const auto found = number_in(group.mount / path / group.limit); found && (!lowest || *found < *lowest))
        lowest = found;
      if (path.empty()) break;
    }
  }
  return lowest;
}

std::optional<uint64_t> control_group_free(const fs::path& root) {
  std::optional<uint64_t> least;
  for (const ControlGroup& group : control_groups(root)) {
    for (fs::path path = group.path;; path = path.parent_path()) {
      const fs::path folder = group.mount / path;
      const auto limit = number_in(folder / group.limit), used = number_in(folder / group.used);
      if (limit && used) {
        const uint64_t pages = std::min(*used, sum_of_lines(folder / "memory.stat", group.pages));
        const uint64_t held = *used - pages, free = *limit > held ? *limit - held : 0;
        if (!least || free < *least) least = free;
      }
      if (path.empty()) break;
    }
  }
  return least;
}

}  // namespace lockstep

#include "sweep/cpu_shares.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>

#include "comm/cores.h"

namespace lockstep {
namespace {

// 0 where the system does not say.
int topology(int cpu, const char* what) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + what);
  int number = 0;
  file >> number;
  return number;
}

}  // namespace

std::vector<int> cpus_by_core() {
  constexpr int kBits = 8 * sizeof(unsigned long);
  const std::vector<unsigned long> mask = allowed_cpus();
  std::vector<std::tuple<int, int, int>> cpus;
  for (int cpu = 0; cpu < static_cast<int>(mask.size()) * kBits; ++cpu) {
    if ((mask[static_cast<size_t>(cpu / kBits)] >> (cpu % kBits) & 1) != 0)
      cpus.emplace_back(topology(cpu, "physical_package_id"), topology(cpu, "core_id"), cpu);
  }
  std::ranges::sort(cpus);
  std::vector<int> sorted;
  for (const auto& [package, core, cpu] : cpus) sorted.push_back(cpu);
  return sorted;
}

std::optional<std::vector<int>> CpuShares::take(size_t count) {
  count = std::clamp<size_t>(count, 1, all_);
  if (free_.size() < count) return std::nullopt;
  std::vector<int> taken(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(count));
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(count));
  return taken;
}

void CpuShares::give_back(const std::vector<int>& cpus) { free_.insert(free_.begin(), cpus.begin(), cpus.end()); }

}  // namespace lockstep

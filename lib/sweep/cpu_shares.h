// The CPUs that trials running side by side share out: each has its own, whole cores as far as that goes.
#pragma once

#include <optional>
#include <vector>

namespace lockstep {

// The CPUs this process may run on, the threads of a core next to each other.
std::vector<int> cpus_by_core();

class CpuShares {
 public:
  explicit CpuShares(std::vector<int> cpus) : free_(std::move(cpus)), all_(free_.size()) {}
  size_t all() const { return all_; }
  // So many CPUs that nobody else has (all where that many don't exist); nullopt: others must end first.
  std::optional<std::vector<int>> take(size_t count);
  void give_back(const std::vector<int>& cpus);

 private:
  std::vector<int> free_;
  size_t all_;
};

}  // namespace lockstep

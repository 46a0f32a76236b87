#include "train/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/whole_number.h"
#include "train/doctor/control_group.h"

namespace lockstep {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// "MemAvailable:   12345 kB"
uint64_t available(const std::filesystem::path& meminfo) {
  std::ifstream in(meminfo);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("MemAvailable:")) continue;
    const size_t digits = line.find_first_of("0123456789"), end = line.find(' ', digits);
    if (const auto kilobytes = whole_number<uint64_t>(line.substr(digits, end - digits))) return *kilobytes << 10;
  }
  return kNoLimit;
}

// Slurm counts in MiB; 0: all of the node.
std::optional<uint64_t> granted(const Environment& environment) {
  const auto number = [&](const char* name) -> uint64_t {
    const char* text = environment(name);
    return text == nullptr ? 0 : whole_number<uint64_t>(text).value_or(0);
  };
  const uint64_t per_cpu = number("SLURM_MEM_PER_CPU") * number("SLURM_CPUS_ON_NODE");
  const uint64_t mebibytes = std::max(number("SLURM_MEM_PER_NODE"), per_cpu);
  return mebibytes > 0 && mebibytes < kNoLimit >> 20 ? std::optional(mebibytes << 20) : std::nullopt;
}

// "activations 1.5 GiB, optimizer 200 MiB, gradients 100 MiB": the three largest.
std::string largest(const MemoryEstimate& estimate) {
  std::vector<MemoryEstimate::Part> parts = estimate.parts();
  std::ranges::sort(parts, std::greater(), &MemoryEstimate::Part::bytes);
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, parts.size()); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", parts[i].name, bytes_text(parts[i].bytes));
  return text;
}

}  // namespace

NodeMemory node_memory(const Environment& environment, const std::filesystem::path& root) {
  NodeMemory node{.free = available(root / "proc/meminfo"), .why = "free on the machine"};
  if (const auto free = control_group_free(root); free && *free < node.free) {
    node.free = *free;
    node.why = "free below the limit of the control group";
  }
  node.granted = granted(environment);
  return node;
}

std::string memory_shortage(const MemoryEstimate& estimate, int ranks, bool first, const NodeMemory& node) {
  const auto count = static_cast<uint64_t>(ranks);
  const uint64_t all = first ? estimate.on_node(ranks) : count * estimate.of_other_rank();
  MemoryEstimate to_come = estimate;
  to_come.data = 0;
  const uint64_t needed = all - count * estimate.data;
  constexpr const char* cure =
      "lower train.batch_size (train.accumulate keeps the global batch), or start fewer ranks per node";
  if (needed > node.free)
    return fmt::format("{} rank(s) of this node need {} more memory (each: {}), but {} are {}: {}", ranks,
                       bytes_text(needed), largest(to_come), bytes_text(node.free), node.why, cure);
  if (node.granted && all > *node.granted)
    return fmt::format(
        "{} rank(s) of this node need {} of memory (each: {}), but Slurm granted the job {} here: ask for more "
        "(--mem), {}",
        ranks, bytes_text(all), largest(estimate), bytes_text(*node.granted), cure);
  return "";
}

}  // namespace lockstep

#include "train/doctor/gpu_findings.h"

#include <fmt/format.h>

#include <set>

#include "backend/device_choice.h"
#include "comm/gpu_placement.h"

namespace lockstep {
namespace {

using Level = Finding::Level;

std::string cuda(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Nothing is visible to CUDA on this rank: why.
Finding why_none(const MachineFacts& rank) {
  const std::string place = fmt::format("rank {} on {}", rank.rank, rank.host);
  if (rank.driver.empty() && rank.gpu.driver == 0) return {Level::notes, "no NVIDIA driver: no GPU is used", ""};
  if (!rank.gpu.built)
    return {Level::warns,
            fmt::format("{}: the driver lists {} GPU(s), but this build has no CUDA", place, rank.driver_gpus.size()),
            "build where CMake finds a CUDA toolkit, or with -DLOCKSTEP_CUDA=ON to see what it misses"};
  if (rank.gpu.driver > 0 && rank.gpu.driver < rank.gpu.runtime)
    return {Level::warns,
            fmt::format("{}: the driver ({}) serves CUDA {}, this build needs {}", place, rank.driver,
                        cuda(rank.gpu.driver), cuda(rank.gpu.runtime)),
            "a newer driver, or a build with an older toolkit"};
  const char* text = rank.visible_devices ? rank.visible_devices->c_str() : nullptr;
  if (const std::string hidden = visible_devices(text, rank.driver_gpus).problem; !hidden.empty())
    return {Level::warns, fmt::format("{}: {}", place, hidden),
            "unset it, or let the launcher set it (srun --gpus-per-task)"};
  return {Level::warns, fmt::format("{}: no GPU: {}", place, rank.gpu.why_none),
          "nvidia-smi must work on this node first"};
}

std::vector<RankGpus> seen_by_ranks(const RunFacts& facts) {
  std::vector<RankGpus> ranks;
  for (const MachineFacts& rank : facts.ranks)
    ranks.push_back({rank.node, rank.local_rank, rank.host, rank.gpu.visible});
  return ranks;
}

void idle(const RunFacts& facts, std::vector<Finding>& out) {
  std::set<int> told;
  for (const MachineFacts& rank : facts.ranks) {
    std::set<std::string> gpus;
    for (const MachineFacts& other : facts.ranks) {
      if (other.node != rank.node) continue;
      for (const Gpu& gpu : other.gpu.visible) gpus.insert(gpu.uuid);
    }
    if (gpus.size() <= static_cast<size_t>(rank.local_size) || !told.insert(rank.node).second) continue;
    out.push_back({Level::notes,
                   fmt::format("{} has {} GPUs and {} rank(s): {} stay idle", rank.host, gpus.size(), rank.local_size,
                               gpus.size() - static_cast<size_t>(rank.local_size)),
                   "start one rank per GPU"});
  }
}

}  // namespace

void gpu_findings(const RunFacts& facts, std::vector<Finding>& out) {
  bool any = false;
  std::set<std::string> told;
  for (const MachineFacts& rank : facts.ranks) {
    any = any || !rank.gpu.visible.empty();
    if (!rank.gpu.visible.empty()) continue;
    Finding finding = why_none(rank);
    if (facts.wanted_device == "cuda" && finding.level != Level::notes) finding.level = Level::stops;
    if (told.insert(finding.text).second) out.push_back(std::move(finding));
  }
  if (!any) return;
  const GpuPlacement placement = place_on_gpus(seen_by_ranks(facts), facts.oversubscribe);
  if (!placement.shared.empty())
    out.push_back({facts.oversubscribe ? Level::warns : Level::stops, placement.shared,
                   facts.oversubscribe ? "each rank then has a part of its speed and memory"
                                       : "give every rank a GPU of its own, or set device.oversubscribe: true"});
  for (size_t rank = 0; rank < placement.choices.size(); ++rank) {
    if (placement.choices[rank].index >= 0 || facts.ranks[rank].gpu.visible.empty()) continue;
    out.push_back(
        {facts.wanted_device == "cuda" ? Level::stops : Level::warns,
         fmt::format("rank {} on {} has no GPU of its own: {} ranks, and it sees {} GPU(s)", rank,
                     facts.ranks[rank].host, facts.ranks[rank].local_size, facts.ranks[rank].gpu.visible.size()),
         "start as many ranks per node as GPUs, or set device.oversubscribe: true"});
  }
  idle(facts, out);
}

}  // namespace lockstep

#include "train/doctor/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "train/doctor/gpu_findings.h"

namespace lockstep {
namespace {

using Level = Finding::Level;
using Findings = std::vector<Finding>;

constexpr uint64_t MiB = uint64_t{1} << 20, GiB = uint64_t{1} << 30;
constexpr uint64_t little_shared_memory = 256 * MiB;  // Docker gives 64 MiB
constexpr uint64_t few_open_files = 1024;
constexpr int64_t little_time = 600;  // seconds

std::string on(const MachineFacts& rank) { return fmt::format("rank {} on {}", rank.rank, rank.host); }

void launch(const RunFacts& facts, Findings& out) {
  if (!facts.launch_problem.empty())
    out.push_back({Level::stops, facts.launch_problem, "MPI and the launcher must belong together"});
  if (!facts.refusal.empty()) out.push_back({Level::stops, facts.refusal, ""});
  const SlurmFacts& slurm = facts.slurm;
  if (!slurm.job || !facts.launch_problem.empty()) return;
  if (slurm.tasks && *slurm.tasks != facts.size && facts.size > 1)
    out.push_back({Level::warns, fmt::format("Slurm has {} tasks, MPI started {} ranks", *slurm.tasks, facts.size),
                   "let srun --mpi=pmix or mpirun without -np take the number from Slurm"});
  if (slurm.nodes && *slurm.nodes != facts.nodes && facts.size > 1)
    out.push_back({Level::warns, fmt::format("the ranks are on {} of the {} nodes", facts.nodes, *slurm.nodes),
                   "ask for as many nodes as are used, or set --ntasks-per-node"});
  if (slurm.tasks && *slurm.tasks > 1 && facts.size == 1)
    out.push_back({Level::notes, fmt::format("the job has {} tasks, this is one process", *slurm.tasks),
                   "to see the ranks of a run: srun --mpi=pmix lockstep doctor"});
  if (slurm.end_time && *slurm.end_time - facts.now < little_time)
    out.push_back({Level::warns, fmt::format("the job ends in {} s", std::max<int64_t>(0, *slurm.end_time - facts.now)),
                   "ask for more with --time"});
}

void cores(const RunFacts& facts, Findings& out) {
  std::set<int> told;
  for (const MachineFacts& rank : facts.ranks) {
    if (rank.local_size <= rank.node_cores || !told.insert(rank.node).second) continue;
    out.push_back({Level::warns,
                   fmt::format("{} ranks share {} core(s) on {}: they wait for each other", rank.local_size,
                               rank.node_cores, rank.host),
                   "start one rank per core, or give the job more (--cpus-per-task; mpirun --bind-to none)"});
  }
  const auto unlike = [&](auto member, const char* what, const char* cure) {
    for (const MachineFacts& rank : facts.ranks) {
      const MachineFacts& first = facts.ranks.front();
      if (rank.*member == first.*member) continue;
      out.push_back({Level::warns,
                     fmt::format("the ranks differ in {}: {} on rank {}, {} on rank {}", what, first.*member,
                                 first.rank, rank.*member, rank.rank),
                     cure});
      return;
    }
  };
  unlike(&MachineFacts::isa, "instruction set",
         "LOCKSTEP_MAX_ISA and ONEDNN_MAX_CPU_ISA make them alike; training refuses to start with unlike layouts");
  unlike(&MachineFacts::threads, "threads", "the slowest rank sets the pace; device.threads makes them alike");
  unlike(&MachineFacts::nccl, "NCCL's settings",
         "Open MPI hands on what mpirun -x NCCL_... names, srun all; ranks that differ may wait for each other");
}

void limits(const RunFacts& facts, Findings& out) {
  const bool alone = facts.size == 1;
  for (const MachineFacts& rank : facts.ranks) {
    if (!alone && rank.local_size > 1 && rank.local_rank == 0) {
      if (!rank.shared_memory_free)
        out.push_back({Level::warns,
                       fmt::format("{}: there is no /dev/shm: ranks of a node exchange messages instead", on(rank)),
                       "mount a tmpfs there"});
      else if (*rank.shared_memory_free < little_shared_memory)
        out.push_back(
            {Level::warns,
             fmt::format(
                 "{}: /dev/shm has {} MiB free; what ranks share of a larger net goes through private memory, slower",
                 on(rank), *rank.shared_memory_free / MiB),
             "containers: --shm-size=1g, or --ipc=host"});
    }
    if (rank.open_files && *rank.open_files < few_open_files)
      out.push_back(
          {Level::warns, fmt::format("{}: only {} files may be open", on(rank), *rank.open_files), "ulimit -n 4096"});
    if (rank.locked_memory && *rank.locked_memory < 64 * MiB && (facts.nodes > 1 || !rank.gpu.visible.empty()))
      out.push_back({Level::warns,
                     fmt::format("{}: only {} KiB of memory may be locked, which fast networks and GPUs need", on(rank),
                                 *rank.locked_memory / 1024),
                     "ulimit -l unlimited (Slurm: PropagateResourceLimitsExcept=MEMLOCK)"});
    if (rank.local_rank == 0 && rank.memory_limit && *rank.memory_limit / static_cast<uint64_t>(rank.local_size) < GiB)
      out.push_back({Level::warns,
                     fmt::format("{}: the control group allows {} MiB for {} rank(s)", on(rank),
                                 *rank.memory_limit / MiB, rank.local_size),
                     "ask for more (Slurm: --mem), or start fewer ranks per node"});
  }
}

}  // namespace

std::vector<Finding> findings(const RunFacts& facts) {
  Findings out;
  launch(facts, out);
  cores(facts, out);
  limits(facts, out);
  gpu_findings(facts, out);
  if (facts.mpi && facts.mpi->cuda_aware == false)
    out.push_back({Level::notes, "MPI is not CUDA-aware: it need not be, it never gets a device pointer", ""});
  std::ranges::stable_sort(out, {}, &Finding::level);
  return out;
}

bool training_would_start(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& finding) { return finding.level == Level::stops; });
}

}  // namespace lockstep

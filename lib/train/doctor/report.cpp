#include "train/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/device_choice.h"
#include "comm/gpu_placement.h"

namespace lockstep {
namespace {

constexpr size_t most_rows = 64;  // of ranks

std::string bytes(const std::optional<uint64_t>& value, const char* none) {
  if (!value) return none;
  if (*value >= uint64_t{1} << 30) return fmt::format("{:.1f} GiB", static_cast<double>(*value) / (1 << 30));
  if (*value >= 1 << 20) return fmt::format("{} MiB", *value >> 20);
  return fmt::format("{} KiB", *value >> 10);
}

std::string duration(int64_t seconds) {
  if (seconds >= 3600) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} min", seconds / 60);
}

void line(std::string& out, std::string_view label, std::string_view text) {
  out += fmt::format("{:<14}{}\n", label, text);
}

void versions(const RunFacts& facts, std::string& out) {
  std::string mpi = "not started";
  if (facts.mpi) {
    const char* aware = !facts.mpi->cuda_aware ? "not told" : *facts.mpi->cuda_aware ? "yes" : "no";
    mpi = fmt::format("{} (standard {}), {}, CUDA-aware: {}", facts.mpi->library, facts.mpi->standard,
                      facts.mpi->thread_level, aware);
  }
  line(out, "MPI", mpi);
  line(out, "launcher", facts.launcher.empty() ? "none: started directly" : facts.launcher);
  std::string libraries;
  for (const LibraryVersion& library : facts.libraries)
    libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", library.name, library.version);
  line(out, "libraries", libraries);
}

void slurm(const RunFacts& facts, std::string& out) {
  const SlurmFacts& slurm = facts.slurm;
  if (!slurm.job) return line(out, "Slurm", "not in a job");
  std::string text = fmt::format("job {}", *slurm.job);
  if (slurm.step) text += fmt::format(" step {}", *slurm.step);
  if (slurm.tasks) text += fmt::format(", {} task(s)", *slurm.tasks);
  if (slurm.nodes) text += fmt::format(" on {} node(s)", *slurm.nodes);
  if (!slurm.node_list.empty()) text += " " + slurm.node_list;
  if (!slurm.tasks_per_node.empty()) text += ", per node " + slurm.tasks_per_node;
  if (slurm.cpus_per_task) text += fmt::format(", {} CPU(s) per task", *slurm.cpus_per_task);
  if (!slurm.cpu_bind.empty()) text += ", binding " + slurm.cpu_bind;
  if (slurm.gpus_on_node) text += fmt::format(", {} GPU(s) on this node", *slurm.gpus_on_node);
  text += slurm.end_time ? ", " + duration(std::max<int64_t>(0, *slurm.end_time - facts.now)) + " left"
                         : ", time left: see squeue -o %L";
  line(out, "Slurm", text);
}

void machine(const MachineFacts& rank, std::string& out) {
  line(out, rank.host,
       fmt::format("{}, {}, {} core(s) allowed", rank.cpu.empty() ? "a CPU" : rank.cpu, rank.isa, rank.node_cores));
  line(out, "",
       fmt::format(
           "/dev/shm {} free, memory {}, locked {}, files {}, stack {}", bytes(rank.shared_memory_free, "missing"),
           bytes(rank.memory_limit, "unlimited"), bytes(rank.locked_memory, "unlimited"),
           rank.open_files ? fmt::format("{}", *rank.open_files) : "unlimited", bytes(rank.stack, "unlimited")));
  const GpuFacts& gpu = rank.gpu;
  std::string text = rank.driver.empty() ? "no NVIDIA driver" : fmt::format("NVIDIA driver {}", rank.driver);
  if (gpu.driver > 0) text += fmt::format(" (CUDA {}.{})", gpu.driver / 1000, gpu.driver % 1000 / 10);
  if (rank.visible_devices) text += fmt::format(", CUDA_VISIBLE_DEVICES={}", *rank.visible_devices);
  line(out, "", text);
  if (rank.nccl != "none") line(out, "", "NCCL's settings: " + rank.nccl);
  for (size_t i = 0; i < gpu.visible.size(); ++i) {
    const Gpu& one = gpu.visible[i];
    line(out, "",
         fmt::format("GPU {}: {}, {}.{}, {}, {}, {}", i, one.name, one.major, one.minor, bytes(one.memory_bytes, ""),
                     one.bus_id, one.uuid));
  }
}

void ranks(const RunFacts& facts, std::string& out) {
  std::vector<RankGpus> seen;
  for (const MachineFacts& rank : facts.ranks)
    seen.push_back({rank.node, rank.local_rank, rank.host, rank.gpu.visible});
  const GpuPlacement placement = place_on_gpus(seen, facts.oversubscribe);
  out += fmt::format("\n{:>6} {:>5} {:>6} {:>6} {:>8}  {:<20} {}\n", "rank", "node", "local", "cores", "threads",
                     "host", "GPU");
  for (size_t i = 0; i < std::min(facts.ranks.size(), most_rows); ++i) {
    const MachineFacts& rank = facts.ranks[i];
    const int index = placement.choices[i].index;
    out += fmt::format(
        "{:>6} {:>5} {:>6} {:>6} {:>8}  {:<20} {}\n", rank.rank, rank.node, rank.local_rank, rank.own_cores,
        rank.threads, rank.host,
        index < 0 ? "-" : fmt::format("{} ({})", index, rank.gpu.visible[static_cast<size_t>(index)].bus_id));
  }
  if (facts.ranks.size() > most_rows) out += fmt::format("... {} more\n", facts.ranks.size() - most_rows);
}

void told(const Finding& finding, std::string& out) {
  static constexpr const char* levels[] = {"STOPS", "WARNING", "note"};
  out += fmt::format("{}: {}\n", levels[static_cast<int>(finding.level)], finding.text);
  if (!finding.cure.empty()) out += fmt::format("    cure: {}\n", finding.cure);
}

}  // namespace

std::string doctor_report(const RunFacts& facts, const std::vector<Finding>& findings) {
  std::string out = fmt::format("{} rank(s) on {} node(s)\n", facts.size, facts.nodes);
  versions(facts, out);
  slurm(facts, out);
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    if (facts.ranks[i].local_rank == 0) machine(facts.ranks[i], out);
  }
  if (!facts.ranks.empty()) ranks(facts, out);
  out += "\n";
  for (const Finding& finding : findings) told(finding, out);
  const std::string asked = facts.config.empty() ? "training" : "training " + facts.config;
  out += training_would_start(findings) ? fmt::format("{} would start: {}\n", asked, facts.choice)
                                        : fmt::format("{} would not start\n", asked);
  return out;
}

}  // namespace lockstep

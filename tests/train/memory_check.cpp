// What a node has to give, from files as the kernel writes them, and what is said where it is too little.
#include "train/memory_check.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "checkpoint_support.h"
#include "train/doctor/control_group.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

void write(const TempDir& root, const std::string& path, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(root.path()) / path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

Environment variables(const std::map<std::string, std::string>& set) {
  return [set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
}

constexpr uint64_t MiB = 1 << 20;

}  // namespace

TEST_CASE("free memory is the least of the machine's and what control groups leave, with file pages counted as free") {
  const TempDir root;
  write(root, "proc/meminfo", "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n");
  CHECK(node_memory(variables({}), root.path()).free == 8 * MiB);
  CHECK(node_memory(variables({}), root.path()).why == "free on the machine");
  write(root, "proc/self/cgroup", "0::/job/step\n");
  write(root, "sys/fs/cgroup/job/memory.max", "6291456\n");
  write(root, "sys/fs/cgroup/job/memory.current", "5242880\n");
  write(root, "sys/fs/cgroup/job/memory.stat", "anon 2097152\nactive_file 1048576\ninactive_file 1048576\n");
  write(root, "sys/fs/cgroup/job/step/memory.max", "max\n");
  const NodeMemory node = node_memory(variables({}), root.path());
  CHECK(node.free == 3 * MiB);
  CHECK(node.why == "free below the limit of the control group");
  write(root, "sys/fs/cgroup/job/memory.current", "9999999\n");  // over the limit, for a moment
  write(root, "sys/fs/cgroup/job/memory.stat", "");
  CHECK(*control_group_free(root.path()) == 0);

  write(root, "proc/self/cgroup", "5:memory:/a\n");
  write(root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4194304\n");
  write(root, "sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2097152\n");
  write(root, "sys/fs/cgroup/memory/a/memory.stat", "inactive_file 5\ntotal_inactive_file 1048576\n");
  CHECK(node_memory(variables({}), root.path()).free == 3 * MiB);
}

TEST_CASE("Slurm grants memory per node or per CPU or all there is") {
  const TempDir root;
  const auto granted = [&](const std::map<std::string, std::string>& set) {
    return node_memory(variables(set), root.path()).granted;
  };
  CHECK_FALSE(granted({}));
  CHECK(granted({{"SLURM_MEM_PER_NODE", "100"}}) == 100 * MiB);
  CHECK(granted({{"SLURM_MEM_PER_CPU", "10"}, {"SLURM_CPUS_ON_NODE", "4"}}) == 40 * MiB);
  CHECK_FALSE(granted({{"SLURM_MEM_PER_NODE", "0"}}));
  CHECK_FALSE(granted({{"SLURM_MEM_PER_NODE", "lots"}}));
}

TEST_CASE("a shortage names the largest parts and what there is and a run that just fits has none") {
  MemoryEstimate estimate;
  estimate.parameters = 10 * MiB, estimate.gradients = 11 * MiB, estimate.activations = 40 * MiB;
  estimate.data = 100 * MiB, estimate.checkpoint = 20 * MiB;
  // In memory already: the data. Rank 0 alone keeps copies for checkpoints.
  CHECK(memory_shortage(estimate, 2, true, {.free = 142 * MiB, .why = "free"}).empty());
  CHECK(memory_shortage(estimate, 2, false, {.free = 122 * MiB, .why = "free"}).empty());
  CHECK(
      memory_shortage(estimate, 2, true, {.free = 142 * MiB - 1, .why = "free on the machine"}) ==
      "2 rank(s) of this node need 142.0 MiB more memory (each: activations 40.0 MiB, checkpoint copies 20.0 MiB, "
      "gradients 11.0 MiB), but 142.0 MiB are free on the machine: lower train.batch_size (train.accumulate keeps the "
      "global batch), or start fewer ranks per node");
  CHECK(memory_shortage(estimate, 1, true, {.free = 1 << 30, .why = "free", .granted = 181 * MiB}).empty());
  CHECK(memory_shortage(estimate, 1, true, {.free = 1 << 30, .why = "free", .granted = 180 * MiB})
            .starts_with("1 rank(s) of this node need 181.0 MiB of memory (each: data sets 100.0 MiB, activations "));
}

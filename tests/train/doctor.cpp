// From the facts of a machine and a launch to what is said about them.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "train/doctor/control_group.h"
#include "train/doctor/findings.h"
#include "train/doctor/machine.h"
#include "train/doctor/report.h"

using namespace lockstep;

namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;

// Two healthy ranks on one node with two GPUs, as a table's first row.
RunFacts healthy() {
  RunFacts facts{.size = 2, .nodes = 1, .launcher = "Open MPI's mpirun", .launch_problem = "", .mpi = MpiFacts{}};
  facts.mpi->cuda_aware = true;
  facts.choice = "1 thread(s) each, cpu";
  for (int rank = 0; rank < 2; ++rank) {
    MachineFacts machine{
        .rank = rank, .node = 0, .local_rank = rank, .local_size = 2, .host = "n1", .cpu = "", .isa = "avx512"};
    machine.own_cores = 1, machine.node_cores = 2;
    machine.shared_memory_free = 4096 * MiB;
    machine.open_files = 65536;
    machine.gpu = {.built = true, .why_none = "", .driver = 13000, .runtime = 13000, .visible = {}};
    for (const char* uuid : {"GPU-a", "GPU-b"})
      machine.gpu.visible.push_back(
          {.name = "H100", .bus_id = uuid[4] == 'a' ? "0000:01:00.0" : "0000:02:00.0", .uuid = uuid});
    machine.driver_gpus = {"GPU-a", "GPU-b"};
    machine.driver = "580.65";
    facts.ranks.push_back(machine);
  }
  return facts;
}

void without_gpus(RunFacts& facts) {
  for (MachineFacts& rank : facts.ranks)
    rank.gpu.visible.clear(), rank.gpu.why_none = "no CUDA-capable device is detected";
}

const Finding* find(const std::vector<Finding>& list, const std::string& text) {
  for (const Finding& finding : list)
    if (finding.text.find(text) != std::string::npos) return &finding;
  return nullptr;
}

// The one finding of the facts that holds `text`.
Finding the(const RunFacts& facts, const std::string& text) {
  const std::vector<Finding> all = findings(facts);
  CAPTURE(doctor_report(facts, all));
  const Finding* found = find(all, text);
  REQUIRE(found != nullptr);
  return *found;
}

struct Tree {  // a root folder of our own
  std::filesystem::path root = std::filesystem::temp_directory_path() / ("lockstep-doctor-" + std::to_string(getpid()));
  ~Tree() { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
};

}  // namespace

TEST_CASE("a healthy launch has nothing against it") {
  const RunFacts facts = healthy();
  const std::vector<Finding> found = findings(facts);
  CHECK(found.empty());
  CHECK(training_would_start(found));
  CHECK(doctor_report(facts, found).find("training would start: 1 thread(s) each, cpu") != std::string::npos);
}

TEST_CASE("a launch that MPI does not know of stops training") {
  RunFacts facts = healthy();
  facts.launch_problem = "MPI size is 1 but the Slurm step has 4 tasks: start with srun --mpi=pmix";
  CHECK(the(facts, "srun --mpi=pmix").level == Finding::Level::stops);
  CHECK_FALSE(training_would_start(findings(facts)));
  CHECK(doctor_report(facts, findings(facts)).find("training would not start") != std::string::npos);
}

TEST_CASE("a start that was refused is told first") {
  RunFacts facts = healthy();
  facts.ranks[0].open_files = 100;
  facts.refusal = "world_size 4";
  CHECK(findings(facts).front().text == "world_size 4");
  CHECK_FALSE(training_would_start(findings(facts)));
}

TEST_CASE("little of a machine is warned of with a cure") {
  struct Row {
    const char* says;
    void (*change)(RunFacts&);
  };
  const Row rows[] = {
      {"/dev/shm has 64 MiB free", [](RunFacts& f) { f.ranks[0].shared_memory_free = 64 * MiB; }},
      {"there is no /dev/shm", [](RunFacts& f) { f.ranks[0].shared_memory_free.reset(); }},
      {"only 256 files may be open", [](RunFacts& f) { f.ranks[1].open_files = 256; }},
      {"only 64 KiB of memory may be locked", [](RunFacts& f) { f.ranks[0].locked_memory = 65536; }},
      {"the control group allows 1024 MiB for 2 rank(s)", [](RunFacts& f) { f.ranks[0].memory_limit = 1024 * MiB; }},
      {"2 ranks share 1 core(s) on n1", [](RunFacts& f) { f.ranks[0].node_cores = f.ranks[1].node_cores = 1; }},
      {"the ranks differ in instruction set: avx512 on rank 0, avx2 on rank 1",
       [](RunFacts& f) { f.ranks[1].isa = "avx2"; }},
      {"the ranks differ in threads: 1 on rank 0, 4 on rank 1", [](RunFacts& f) { f.ranks[1].threads = 4; }},
      {"the ranks differ in NCCL's settings: NCCL_DEBUG=INFO on rank 0, none on rank 1",
       [](RunFacts& f) { f.ranks[0].nccl = "NCCL_DEBUG=INFO"; }},
      {"Slurm has 8 tasks, MPI started 2 ranks", [](RunFacts& f) { f.slurm.job = 7, f.slurm.tasks = 8; }},
      {"the ranks are on 1 of the 4 nodes", [](RunFacts& f) { f.slurm.job = 7, f.slurm.nodes = 4; }},
      {"the job ends in 60 s", [](RunFacts& f) { f.slurm.job = 7, f.now = 1000, f.slurm.end_time = 1060; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    RunFacts facts = healthy();
    row.change(facts);
    const Finding found = the(facts, row.says);
    CHECK(found.level == Finding::Level::warns);
    CHECK(found.cure != "");
    CHECK(training_would_start(findings(facts)));
  }
}

TEST_CASE("no GPU at all is said with its reason") {
  struct Row {
    const char* says;
    void (*change)(MachineFacts&);
  };
  const Row rows[] = {
      {"no NVIDIA driver", [](MachineFacts& m) { m.driver = "", m.gpu.driver = 0, m.driver_gpus.clear(); }},
      {"the driver lists 2 GPU(s), but this build has no CUDA",
       [](MachineFacts& m) { m.gpu.built = false, m.gpu.driver = 0; }},
      {"the driver (580.65) serves CUDA 12.4, this build needs 13.0", [](MachineFacts& m) { m.gpu.driver = 12040; }},
      {"CUDA_VISIBLE_DEVICES is empty", [](MachineFacts& m) { m.visible_devices = ""; }},
      {"'9' is none of the 2 GPU(s)", [](MachineFacts& m) { m.visible_devices = "9"; }},
      {"no CUDA-capable device is detected", [](MachineFacts&) {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    RunFacts facts = healthy();
    without_gpus(facts);
    for (MachineFacts& rank : facts.ranks) row.change(rank);
    the(facts, row.says);
    CHECK(training_would_start(findings(facts)));  // on the CPU
  }
}

TEST_CASE("a GPU that is asked for and hidden stops training") {
  RunFacts facts = healthy();
  without_gpus(facts);
  for (MachineFacts& rank : facts.ranks) rank.visible_devices = "";
  facts.wanted_device = "cuda";
  CHECK(the(facts, "CUDA_VISIBLE_DEVICES is empty").level == Finding::Level::stops);
}

TEST_CASE("more ranks than GPUs stop a run on GPUs and only such a run") {
  RunFacts facts = healthy();
  for (MachineFacts& rank : facts.ranks) rank.gpu.visible.resize(1);
  CHECK(the(facts, "rank 1 on n1 has no GPU of its own").level == Finding::Level::warns);
  facts.wanted_device = "cuda";
  CHECK(the(facts, "rank 1 on n1 has no GPU of its own").level == Finding::Level::stops);
  facts.oversubscribe = true;
  CHECK(the(facts, "ranks 0 and 1 hold the same GPU").level == Finding::Level::warns);
}

TEST_CASE("GPUs without a rank are noted") {
  RunFacts facts = healthy();
  facts.ranks.resize(1);
  facts.size = facts.ranks[0].local_size = 1;
  CHECK(the(facts, "n1 has 2 GPUs and 1 rank(s): 1 stay idle").level == Finding::Level::notes);
}

TEST_CASE("the report names every rank with its GPU") {
  const std::string text = doctor_report(healthy(), {});
  CHECK(text.find("1 (0000:02:00.0)") != std::string::npos);
  CHECK(text.find("Open MPI's mpirun") != std::string::npos);
  CHECK(text.find("not in a job") != std::string::npos);
}

TEST_CASE("the report names the settings of NCCL that a node has") {
  RunFacts facts = healthy();
  CHECK(doctor_report(facts, {}).find("NCCL's settings") == std::string::npos);
  facts.ranks[0].nccl = "NCCL_DEBUG=INFO NCCL_IB_DISABLE=1";
  CHECK(doctor_report(facts, {}).find("NCCL's settings: NCCL_DEBUG=INFO NCCL_IB_DISABLE=1\n") != std::string::npos);
}

TEST_CASE("Slurm's variables are read where they are and missed where not") {
  const std::map<std::string, std::string> variables = {{"SLURM_JOB_ID", "42"},
                                                        {"SLURM_NTASKS", "8"},
                                                        {"SLURM_STEP_NUM_TASKS", "4"},
                                                        {"SLURM_JOB_NUM_NODES", "2"},
                                                        {"SLURM_TASKS_PER_NODE", "2(x2)"},
                                                        {"SLURM_CPU_BIND", "quiet,mask_cpu:0x3"},
                                                        {"SLURM_JOB_END_TIME", "9000"},
                                                        {"SLURM_GPUS_ON_NODE", "many"}};
  RunFacts facts = healthy();
  facts.slurm = slurm_facts([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  facts.now = 9000 - 3700;
  CHECK(facts.slurm.job == 42);
  CHECK(facts.slurm.tasks == 4);  // the step's, not the job's
  CHECK(facts.slurm.nodes == 2);
  CHECK_FALSE(facts.slurm.gpus_on_node);
  CHECK_FALSE(facts.slurm.cpus_per_task);
  const std::string text = doctor_report(facts, {});
  CHECK(text.find("job 42, 4 task(s) on 2 node(s), per node 2(x2), binding quiet,mask_cpu:0x3, 1 h 1 min left") !=
        std::string::npos);
}

TEST_CASE("the lowest memory limit on the way to the root counts") {
  const Tree tree;
  tree.write("proc/self/cgroup", "0::/job/step\n");
  tree.write("sys/fs/cgroup/job/memory.max", "1048576\n");
  tree.write("sys/fs/cgroup/job/step/memory.max", "max\n");
  CHECK(control_group_limit(tree.root) == 1048576);
  tree.write("sys/fs/cgroup/job/step/memory.max", "4096\n");
  CHECK(control_group_limit(tree.root) == 4096);
  tree.write("proc/self/cgroup", "3:cpu:/a\n5:memory:/a\n");
  tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(control_group_limit(tree.root));
  tree.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "777\n");
  CHECK(control_group_limit(tree.root) == 777);
}

TEST_CASE("the driver's own list is read without CUDA") {
  const Tree tree;
  CHECK(driver_version(tree.root) == "");
  CHECK(driver_gpus(tree.root).empty());
  tree.write("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 2025\nGCC version: 12.2.0\n");
  tree.write("proc/driver/nvidia/gpus/0000:3b:00.0/information",
             "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-77aa\nBus Type: \t PCIe\n");
  CHECK(driver_version(tree.root) == "580.65.06");
  CHECK(driver_gpus(tree.root) == std::vector<std::string>{"GPU-77aa"});
}

TEST_CASE("this machine has facts") {
  const MachineFacts facts = machine_facts();
  CHECK(facts.own_cores >= 1);
  CHECK(facts.host != "");
  CHECK(facts.isa != "");
}

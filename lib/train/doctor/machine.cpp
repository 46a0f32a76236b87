#include "train/doctor/machine.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "comm/cores.h"
#include "comm/nccl_settings.h"
#include "core/cpu_features.h"
#include "train/doctor/control_group.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

// The value of the first line "KEY<blanks>: VALUE".
std::string value_after_colon(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && trimmed(line.substr(0, colon)) == key) return trimmed(line.substr(colon + 1));
  }
  return "";
}

std::optional<uint64_t> limit(int resource) {
  rlimit found{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &found) != 0 || found.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return found.rlim_cur;
}

std::optional<uint64_t> shared_memory_free() {
  struct statvfs found {};
  if (statvfs("/dev/shm", &found) != 0) return std::nullopt;
  return static_cast<uint64_t>(found.f_bavail) * found.f_frsize;
}

}  // namespace

std::vector<std::string> driver_gpus(const fs::path& root) {
  std::vector<std::string> uuids;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", none))
    uuids.push_back(value_after_colon(entry.path() / "information", "GPU UUID"));
  std::ranges::sort(uuids);
  return uuids;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ...": the first word with two dots.
std::string driver_version(const fs::path& root) {
  std::ifstream in(root / "proc/driver/nvidia/version");
  std::string line;
  std::getline(in, line);
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
    begin = end + 1;
  }
  return "";
}

MachineFacts cpu_facts() {
  MachineFacts facts;
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  facts.host = host;
  facts.cpu = value_after_colon("/proc/cpuinfo", "model name");
  facts.isa = name(detect_isa());
  facts.own_cores = std::max(1, count_cpus(allowed_cpus()));
  facts.node_cores = facts.threads = facts.own_cores;
  return facts;
}

MachineFacts machine_facts() {
  MachineFacts facts = cpu_facts();
  facts.shared_memory_free = shared_memory_free();
  facts.memory_limit = control_group_limit();
  facts.locked_memory = limit(RLIMIT_MEMLOCK);
  facts.open_files = limit(RLIMIT_NOFILE);
  facts.stack = limit(RLIMIT_STACK);
  facts.gpu = gpu_facts();
  if (const char* text = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible_devices = text;
  facts.driver_gpus = driver_gpus();
  facts.driver = driver_version();
  if (const std::string settings = nccl_settings(); !settings.empty()) facts.nccl = settings;
  return facts;
}

MachineFacts machine_facts(const MpiEnvironment& environment) {
  MachineFacts facts = machine_facts();
  facts.rank = environment.rank();
  facts.node = environment.node_index();
  facts.local_rank = environment.local_rank();
  facts.local_size = environment.local_size();
  facts.node_cores = environment.allowed_cores();
  facts.threads = environment.threads();
  return facts;
}

}  // namespace lockstep

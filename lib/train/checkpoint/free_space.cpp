#include "train/checkpoint/free_space.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <filesystem>
#include <system_error>

#include "train/checkpoint/state_json.h"
#include "train/checkpoint/tensor_writer.h"

namespace lockstep {
namespace {

constexpr uint64_t kBlock = 4096;

uint64_t in_blocks(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

std::string existing_parent(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = fs::absolute(dir, error);
  while (!fs::exists(path, error) && path != path.parent_path()) path = path.parent_path();
  return path.string();
}

double mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

uint64_t checkpoint_bytes(const Snapshot& snapshot) {
  uint64_t bytes = 3 * kBlock;  // the directory, the manifest, the pointers
  bytes += in_blocks(to_json(snapshot.state).size()) + in_blocks(snapshot.config.size());
  for (const auto& [name, tensors] : snapshot.tensors) bytes += in_blocks(tensor_file_bytes(tensors));
  return bytes;
}

std::optional<std::string> space_shortage(const std::string& dir, uint64_t bytes, int64_t count) {
  struct statvfs status {};
  if (statvfs(existing_parent(dir).c_str(), &status) != 0 || status.f_blocks == 0) return std::nullopt;
  const uint64_t free = uint64_t{status.f_bavail} * status.f_frsize;
  if (static_cast<double>(bytes) * static_cast<double>(count) <= static_cast<double>(free)) return std::nullopt;
  return fmt::format(
      "{}: {} checkpoints of {:.1f} MiB need {:.1f} MiB, but its file system has {:.1f} MiB left: make room there, "
      "lower checkpoint.keep or set run.dir to another disk",
      dir, count, mib(bytes), mib(bytes) * static_cast<double>(count), mib(free));
}

}  // namespace lockstep

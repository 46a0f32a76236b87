// Reading: a directory as it was written, or whatever a path given by a person stands for.
#include "train/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/log.h"
#include "train/checkpoint/checkpoint_names.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/state_json.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

constexpr uint64_t kMostPointerBytes = 64;

Manifest read_manifest(const Directory& directory) {
  const std::vector<std::byte> bytes = directory.read(kManifestName, kMostTextBytes);
  return parse_manifest(as_text(bytes), directory.path() + "/" + kManifestName);
}

// Exactly the files of the manifest.
void check_names(const Directory& directory, const Manifest& manifest) {
  const std::vector<std::string> names = directory.names();
  for (const std::string& name : names) {
    if (name != kManifestName && !manifest.files.contains(name))
      throw_error("{}: holds '{}', which is not in its manifest", directory.path(), printable(name));
  }
  for (const auto& [name, sum] : manifest.files) {
    if (!std::ranges::binary_search(names, name)) throw_error("{}/{}: is missing", directory.path(), name);
  }
  for (const char* name : {kStateName, kConfigName}) {
    if (!manifest.files.contains(name)) throw_error("{}: is no checkpoint without {}", directory.path(), name);
  }
}

std::vector<std::byte> read_checked(const Directory& directory, const std::string& name, const FileSum& expected) {
  if (!name.ends_with(kTensorSuffix) && expected.size > kMostTextBytes)
    throw_error("{}/{}: expected {} bytes at most, found {}", directory.path(), name, kMostTextBytes, expected.size);
  std::vector<std::byte> bytes = directory.read(name, expected.size);
  FileSum found;
  found.add(bytes);
  if (found.size != expected.size)
    throw_error("{}/{}: expected {} bytes, found {}", directory.path(), name, expected.size, found.size);
  if (found.crc != expected.crc)
    throw_error("{}/{}: was changed after it was written (CRC-32 {:08x}, the manifest says {:08x})", directory.path(),
                name, found.crc, expected.crc);
  return bytes;
}

Checkpoint read_pointer(const std::filesystem::path& file) {
  const Directory folder = Directory::open(file.has_parent_path() ? file.parent_path().string() : ".");
  const std::string name = file.filename().string();
  const std::vector<std::byte> bytes = folder.read(name, kMostPointerBytes);
  const auto step = step_in_pointer(as_text(bytes));
  if (!step) throw_error("{}: does not hold the name of a checkpoint", file.string());
  return read_checkpoint_directory(folder.below(step_name(*step)));
}

bool holds_checkpoints(const Directory& directory) {
  const std::vector<std::string> names = directory.names();
  return std::ranges::any_of(names, [](const std::string& name) { return step_of(name).has_value(); });
}

}  // namespace

const TensorFile& Checkpoint::file(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw_error("{}: holds no {}{}", path, name, kTensorSuffix);
  return found->second;
}

Checkpoint read_checkpoint_directory(const Directory& directory) {
  const Manifest manifest = read_manifest(directory);
  check_names(directory, manifest);
  const auto named = step_of(std::filesystem::path(directory.path()).filename().string());
  if (named && *named != manifest.step) throw_error("{}: its manifest is of step {}", directory.path(), manifest.step);
  Checkpoint checkpoint{.path = directory.path(), .step = manifest.step, .state = {}, .config = {}, .tensors = {}};
  for (const auto& [name, sum] : manifest.files) {
    const std::string path = directory.path() + "/" + name;
    std::vector<std::byte> bytes = read_checked(directory, name, sum);
    if (name == kStateName) {
      checkpoint.state = parse_state(as_text(bytes), path);
    } else if (name == kConfigName) {
      checkpoint.config = as_text(bytes);
    } else if (name.ends_with(kTensorSuffix)) {
      const std::string file = name.substr(0, name.size() - kTensorSuffix.size());
      checkpoint.tensors.emplace(file, TensorFile::parse(std::move(bytes), path));
    } else {
      throw_error("{}: is no kind of file that a checkpoint holds", path);
    }
  }
  return checkpoint;
}

Checkpoint read_checkpoint(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;  // what cannot be looked at is reported when it is opened
  if (fs::is_regular_file(path, error)) return read_pointer(path);
  const Directory directory = Directory::open(path);
  if (directory.holds_file(kManifestName)) return read_checkpoint_directory(directory);
  const std::string below = path + "/" + kCheckpointsName;
  const bool is_run = !holds_checkpoints(directory) && fs::is_directory(below, error);
  auto newest = CheckpointFolder(is_run ? below : path, {}).newest();
  if (!newest) throw_error("{}: holds no checkpoint", path);
  return std::move(*newest);
}

}  // namespace lockstep

// A run's checkpoints: written under another name, renamed when they are whole, removed by rule.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/log.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_names.h"
#include "train/checkpoint/directory.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/state_json.h"
#include "train/checkpoint/tensor_writer.h"

namespace lockstep {
namespace {

FileSum write_text(const Directory& directory, const std::string& name, std::string_view text) {
  if (text.size() > kMostTextBytes)
    throw_error("{}/{}: would have {} bytes; read are {} at most", directory.path(), name, text.size(), kMostTextBytes);
  NewFile file(directory, name);
  file.write(as_bytes(text));
  return file.finish();
}

void write_files(const Directory& directory, const Snapshot& snapshot) {
  Manifest manifest{.step = snapshot.step, .files = {}};
  for (const auto& [name, tensors] : snapshot.tensors) {
    const std::string file = name + std::string(kTensorSuffix);
    if (!is_plain_name(file)) throw_error("'{}' is no name for a file of a checkpoint", name);
    manifest.files[file] = write_tensor_file(directory, file, tensors);
  }
  manifest.files[kStateName] = write_text(directory, kStateName, to_json(snapshot.state));
  manifest.files[kConfigName] = write_text(directory, kConfigName, snapshot.config);
  write_text(directory, kManifestName, to_json(manifest));
  directory.flush();
}

void remove_or_warn(const Directory& folder, const std::string& name) {
  try {
    folder.remove(name);
  } catch (const Error& error) {
    log::warning("{}", error.what());
  }
}

std::vector<int64_t> all_steps(const Directory& folder) {
  std::vector<int64_t> steps;
  for (const std::string& name : folder.names()) {
    const auto step = step_of(name);
    if (step && folder.holds_directory(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

// Under its final name. What was there under this name is gone afterwards.
void put_in_place(const Directory& folder, const std::string& growing, const std::string& name) {
  if (!folder.holds_directory(name)) {
    folder.rename(growing, name);
    folder.flush();
    return;
  }
  folder.exchange(growing, name);
  folder.flush();
  for (const std::string& replaced : {growing, name + std::string(kAside)}) remove_or_warn(folder, replaced);
}

// What `last` or `best` names; nullopt: nothing readable.
std::optional<int64_t> pointed_at(const Directory& folder, const char* pointer) {
  if (!folder.holds_file(pointer)) return std::nullopt;
  const std::vector<std::byte> bytes = folder.read(pointer, kMostTextBytes);
  return step_in_pointer(as_text(bytes));
}

void remove_by_rule(const Directory& folder, const KeepRule& keep) {
  const std::vector<int64_t> steps = all_steps(folder);
  std::set<int64_t> kept;
  for (const char* pointer : {kLast, kBest}) {
    if (const auto step = pointed_at(folder, pointer)) kept.insert(*step);
  }
  const size_t newest = std::min(steps.size(), static_cast<size_t>(std::max<int64_t>(keep.last, 1)));
  kept.insert(steps.end() - static_cast<std::ptrdiff_t>(newest), steps.end());
  for (const int64_t step : steps) {
    if (kept.contains(step) || (keep.every > 0 && step % keep.every == 0)) continue;
    // Renamed first: whoever is killed here leaves nothing that looks like a checkpoint.
    const std::string name = step_name(step), going = name + std::string(kGoing);
    folder.rename(name, going);
    remove_or_warn(folder, going);
  }
}

}  // namespace

void CheckpointFolder::prepare() const {
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  if (error) throw_error("{}: cannot be made: {}", dir_, error.message());
  const Directory folder = Directory::open(dir_);
  for (const std::string& name : folder.names()) {
    const size_t dot = std::min(name.find('.'), name.size());
    const std::string start = name.substr(0, dot), end = name.substr(dot);
    const bool ours = step_of(start).has_value() || start == kLast || start == kBest;
    if (!ours || (end != kGrowing && end != kAside && end != kGoing)) continue;
    // Killed between the two renames of a replacement: the older one is the only one.
    if (end == kAside && !folder.holds_directory(start)) {
      folder.rename(name, start);
    } else {
      folder.remove(name);
    }
  }
  const std::string trial = "writable.tmp";
  folder.remove(trial);
  write_text(folder, trial, "");
  folder.remove(trial);
  folder.flush();
}

std::string CheckpointFolder::write(const Snapshot& snapshot, bool best) const {
  const FileLimitIsError limit;
  const Directory folder = Directory::open(dir_);
  const std::string name = step_name(snapshot.step), growing = name + std::string(kGrowing);
  folder.make(growing);
  try {
    write_files(folder.below(growing), snapshot);
    put_in_place(folder, growing, name);
  } catch (...) {
    remove_or_warn(folder, growing);
    throw;
  }
  folder.replace_text(kLast, name + "\n");
  if (best && keep_.best) folder.replace_text(kBest, name + "\n");
  try {
    remove_by_rule(folder, keep_);
  } catch (const Error& error) {  // the new one is safe all the same
    log::warning("an old checkpoint is not removed: {}", error.what());
  }
  return dir_ + "/" + name;
}

std::vector<int64_t> CheckpointFolder::steps() const {
  std::error_code error;
  if (!std::filesystem::is_directory(dir_, error)) return {};
  const Directory folder = Directory::open(dir_);
  std::vector<int64_t> steps = all_steps(folder);
  std::erase_if(steps, [&](int64_t step) { return !folder.below(step_name(step)).holds_file(kManifestName); });
  return steps;
}

void CheckpointFolder::remove_after(int64_t step) const {
  const Directory folder = Directory::open(dir_);
  for (const char* pointer : {kLast, kBest}) {
    if (pointed_at(folder, pointer).value_or(step + 1) > step) folder.remove(pointer);
  }
  for (const int64_t there : all_steps(folder)) {
    if (there > step) folder.remove(step_name(there));
  }
  folder.flush();
}

std::optional<Checkpoint> CheckpointFolder::newest() const {
  std::error_code error;
  if (!std::filesystem::exists(dir_, error) && !error) return std::nullopt;
  const Directory folder = Directory::open(dir_);
  const std::vector<int64_t> steps = all_steps(folder);
  std::string damage;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      Checkpoint found = read_checkpoint_directory(folder.below(step_name(*step)));
      if (!damage.empty()) log::warning("THE NEWEST CHECKPOINT IS DAMAGED; going back to {}{}", found.path, damage);
      return found;
    } catch (const Error& wrong) {
      damage += fmt::format("\n  damaged: {}", wrong.what());
    }
  }
  if (damage.empty()) return std::nullopt;
  throw_error("{}: holds no whole checkpoint:{}\n  remove what is damaged to start anew", dir_, damage);
}

}  // namespace lockstep

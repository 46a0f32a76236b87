#include "train/resume.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "comm/gather.h"
#include "core/error.h"

namespace lockstep {

std::optional<Checkpoint> find_checkpoint(const ResumeRequest& request, const CheckpointFolder& folder,
                                          bool will_save) {
  if (request.from == "auto") return folder.newest();
  std::optional<Checkpoint> found;
  if (!request.from.empty() && !std::filesystem::exists(request.from))
    throw_error("--resume {}: no such checkpoint; --resume auto takes the newest of run.dir", request.from);
  if (!request.from.empty()) found = read_checkpoint(request.from);
  const int64_t start = found ? found->step : -1;
  const std::vector<int64_t> steps = folder.steps();
  if (!will_save || steps.empty() || steps.back() <= start) return found;
  if (!request.overwrite)
    throw_error(
        "{}: an earlier run has left checkpoints here, the newest after {} steps: go on from it with --resume auto, "
        "choose another run.dir, or remove {} with --overwrite",
        folder.dir(), steps.back(), found ? "those after step " + std::to_string(start) : "them");
  folder.remove_after(start);
  return found;
}

std::string broadcast_text(const std::string& text, Communicator& communicator) {
  return gather_texts(communicator.rank() == 0 ? text : "", communicator).front();
}

RunPosition run_position(const State& state, const DataPlan& plan, bool allow_batch_change) {
  const RunPosition at{
      .step = state.integer("step"), .epoch = state.integer("epoch"), .position = state.integer("position")};
  const int64_t before = state.integer("global_batch"), now = plan.epoch().global_batch();
  if (before != now && !allow_batch_change)
    throw_error(
        "the checkpoint is of a run with a global batch of {}, this one has {} ({} x {} x {} accumulated): choose "
        "world_size, batch_size and accumulate so that it stays {}, or allow the change with --allow-batch-change",
        before, now, plan.spec().world_size, plan.spec().batch_size, plan.spec().accumulate, before);
  if (state.integer("samples") != plan.spec().samples)
    throw_error("the checkpoint is of a run on {} training samples, this one has {}: the data has changed",
                state.integer("samples"), plan.spec().samples);
  if (at.step < 0 || at.epoch < 0) throw_error("saved state: step {} of epoch {}", at.step, at.epoch);
  if (!plan.spec().own.empty() && at.position > 0 &&
      (state.integer("world_size") != plan.spec().world_size || state.integer("batch_size") != plan.spec().batch_size))
    throw_error(
        "the checkpoint lies inside an epoch over data that each rank has for itself: it can only be gone on with by "
        "{} ranks with a batch_size of {}, found {} and {}",
        state.integer("world_size"), state.integer("batch_size"), plan.spec().world_size, plan.spec().batch_size);
  return at;
}

int64_t total_steps(const DataPlan& plan, const RunPosition& at) {
  const int64_t epochs_after = std::max<int64_t>(plan.spec().epochs - at.epoch - 1, 0);
  const int64_t rest = at.epoch < plan.spec().epochs ? plan.rest_of_epoch(at.position).steps() : 0;
  int64_t more = 0, total = 0;
  if (__builtin_mul_overflow(epochs_after, plan.epoch().steps(), &more) ||
      __builtin_add_overflow(more, at.step + rest, &total))
    throw_error("more than 2^63 steps");
  return plan.spec().max_steps ? std::min(total, *plan.spec().max_steps) : total;
}

namespace {

// The lines of a resolved config as "section.key: value".
std::vector<std::string> settings(const std::string& yaml) {
  std::vector<std::string> lines, path;
  for (size_t begin = 0; begin < yaml.size();) {
    const size_t end = std::min(yaml.find('\n', begin), yaml.size());
    std::string line = yaml.substr(begin, end - begin);
    begin = end + 1;
    line.erase(std::min(line.find("  # "), line.size()));  // what the key means
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    path.resize(std::min(path.size(), indent / 2));
    std::string where;
    for (const std::string& part : path) where += part + ".";
    if (line.ends_with(':')) {
      path.push_back(line.substr(indent, line.size() - indent - 1));
    } else {
      lines.push_back(where + line.substr(indent));
    }
  }
  return lines;
}

}  // namespace

std::string config_differences(const std::string& before, const std::string& now, size_t most) {
  const std::vector<std::string> old_lines = settings(before), new_lines = settings(now);
  const auto key = [](const std::string& line) { return line.substr(0, line.find(": ")); };
  const auto value = [](const std::string& line) {
    const size_t at = line.find(": ");
    return at == std::string::npos ? line : line.substr(at + 2);
  };
  std::vector<std::string> differences;
  for (const std::string& line : new_lines) {
    if (std::ranges::find(old_lines, line) != old_lines.end()) continue;
    const auto was = std::ranges::find_if(old_lines, [&](const std::string& other) { return key(other) == key(line); });
    differences.push_back(
        fmt::format("{}: {} -> {}", key(line), was == old_lines.end() ? "unset" : value(*was), value(line)));
  }
  const size_t told = std::min(most, differences.size());
  std::string text =
      fmt::format("{}", fmt::join(differences.begin(), differences.begin() + static_cast<long>(told), ", "));
  if (told < differences.size()) text += fmt::format(" and {} more", differences.size() - told);
  return text;
}

}  // namespace lockstep

#include "train/inspect/checkpoint_content.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "train/checkpoint/checkpoint_names.h"
#include "train/config_scalar.h"
#include "train/memory_estimate.h"
#include "train/saved/saved_eval.h"

namespace lockstep {
namespace {

std::string shape_text(const TensorFile::Entry& entry) { return fmt::format("[{}]", fmt::join(entry.shape, ", ")); }

void append_files(const Checkpoint& checkpoint, std::string& text) {
  auto out = std::back_inserter(text);
  std::error_code error;  // a file that has gone since it was read is left out
  std::map<std::string, uint64_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.path, error)) {
    const uint64_t size = entry.file_size(error);
    if (!error) sizes[entry.path().filename().string()] = size;
  }
  for (const auto& [name, size] : sizes) {
    fmt::format_to(out, "  {:<24}  {:>10}", name, bytes_text(size));
    const std::string file = name.substr(0, name.size() - std::min(name.size(), kTensorSuffix.size()));
    const auto found = checkpoint.tensors.find(file);
    if (name.ends_with(kTensorSuffix) && found != checkpoint.tensors.end())
      fmt::format_to(out, "  {} tensors", found->second.entries().size());
    text += "\n";
  }
}

void append_tensors(const Checkpoint& checkpoint, std::string& text) {
  auto out = std::back_inserter(text);
  for (const auto& [file, tensors] : checkpoint.tensors) {
    fmt::format_to(out, "{}{}\n", file, kTensorSuffix);
    for (const auto& [name, entry] : tensors.entries())
      fmt::format_to(out, "  {:<40}  {:<4}  {}\n", printable(name), safetensors_name(entry.type), shape_text(entry));
  }
}

}  // namespace

std::string checkpoint_text(const SavedRun& run, bool tensors) {
  const State& state = run.state;
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "checkpoint {}\n", run.path);
  fmt::format_to(out, "  step {}, epoch {} ({} samples into it)\n", run.step, state.integer("epoch") + 1,
                 state.integer("position"));
  fmt::format_to(out, "  trained on {} samples, global batch {} = {} x {} ranks x {} accumulated\n",
                 state.integer("samples"), state.integer("global_batch"), state.integer("batch_size"),
                 state.integer("world_size"), state.integer("accumulate"));
  fmt::format_to(out, "  optimizer {}, {} steps; {}{}\n", state.text("optimizer.kind"),
                 state.integer("optimizer.steps"), run.config.train.precision,
                 run.config.train.ema ? ", weights averaged" : "");
  const std::vector<LoggedValue> logged = logged_values(run);
  if (logged.empty()) text += "  no validation belongs to this step\n";
  for (const LoggedValue& value : logged) fmt::format_to(out, "  validation {} {}\n", value.name, value.value);
  fmt::format_to(out, "  written by {}\n", state.text("build"));
  append_files(*run.checkpoint, text);
  if (tensors) append_tensors(*run.checkpoint, text);
  return text;
}

Dataset::Info training_data_info(const SavedRun& run) {
  Dataset::Info info;
  info.size = run.state.integer("samples");
  info.sample_shape = sample_shape(run);
  info.target_kind = run.config.train.loss == "cross_entropy" ? TargetKind::labels : TargetKind::values;
  return info;
}

}  // namespace lockstep

#include "train/saved/saved_run.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "comm/run_agreed.h"
#include "core/error.h"
#include "dist/replica_check.h"
#include "train/checkpoint/checkpoint_names.h"
#include "train/checkpoint/model_tensors.h"
#include "train/checkpoint/state_json.h"
#include "train/loss_scaling.h"
#include "train/resume.h"
#include "train/saved/input_files.h"
#include "train/translate.h"

namespace lockstep {
namespace {

// What may be another one than the run's without the model being another one.
constexpr std::array<std::string_view, 4> kFree{"data", "device", "distributed", "eval"};

void check_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& assignment : overrides) {
    const std::string key = assignment.substr(0, assignment.find('='));
    const std::string section = key.substr(0, key.find('.'));
    if (std::ranges::find(kFree, section) == kFree.end())
      throw_error("--set {}: belongs to the training that has been; of a checkpoint's config only {} may be changed",
                  key, fmt::join(kFree, ", "));
  }
}

Config config_of(const std::string& text, const std::string& path, const std::vector<std::string>& overrides) {
  check_overrides(overrides);
  std::vector<std::string> all{"distributed.world_size=null"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return parse_config(text, path + "/" + kConfigName, all);
}

SavedRun make_saved_run(const std::string& path, const std::string& config, State state,
                        const std::vector<std::string>& overrides) {
  SavedRun run{.path = path, .step = 0, .state = std::move(state), .config = {}, .checkpoint = {}};
  run.step = run.state.integer("step");
  run.config = config_of(config, path, overrides);
  find_data_above(run.config, path);
  return run;
}

}  // namespace

SavedRun read_saved_run(const std::string& path, const std::vector<std::string>& overrides) {
  Checkpoint checkpoint = read_checkpoint(path);
  SavedRun run = make_saved_run(checkpoint.path, checkpoint.config, checkpoint.state, overrides);
  run.checkpoint = std::move(checkpoint);
  return run;
}

SavedRun read_saved_run(const std::string& path, const std::vector<std::string>& overrides,
                        Communicator& communicator) {
  std::optional<Checkpoint> checkpoint;
  run_agreed(communicator, [&] {
    if (communicator.rank() == 0) checkpoint = read_checkpoint(path);
  });
  const bool first = checkpoint.has_value();
  const std::string found = broadcast_text(first ? checkpoint->path : "", communicator);
  const std::string config = broadcast_text(first ? checkpoint->config : "", communicator);
  const std::string state = broadcast_text(first ? to_json(checkpoint->state) : "", communicator);
  SavedRun run;
  run_agreed(communicator,
             [&] { run = make_saved_run(found, config, parse_state(state, found + "/" + kStateName), overrides); });
  run.checkpoint = std::move(checkpoint);
  return run;
}

Shape sample_shape(const SavedRun& run) {
  if (run.state.contains("sample_shape")) return Shape(run.state.integers("sample_shape"));
  Generator generator(initial_seed(run.config, 0));
  return make_dataset(run.config, run.config.data.train, 0, generator)->sample_shape();
}

const TensorFile& evaluated_weights(const Checkpoint& checkpoint, const Config& config) {
  return checkpoint.file(config.train.ema ? "ema" : "model");
}

std::unique_ptr<Network> load_network(const SavedRun& run, const Shape& sample, Backend& backend,
                                      Communicator& communicator) {
  std::unique_ptr<Network> network;
  run_agreed(communicator, [&] {
    network = std::make_unique<Network>(model_spec(run.config), sample, backend, run.state.integer("batch_size"),
                                        frozen_parameters(run.config), nullptr, activation_type(run.config.train));
    network->lay_out(Buffer::host);
    if (!run.checkpoint) return;
    ParameterStore& store = network->store();
    const TensorFile& file = evaluated_weights(*run.checkpoint, run.config);
    check_tensor_count(file, store.parameters().size() + store.buffers().size());
    read_parameter_tensors(file, store, "", store.values());
    read_buffer_tensors(file, store, "", store.buffer_values());
  });
  broadcast_model(network->store(), communicator);
  return network;
}

std::string describe(const SavedRun& run) {
  return fmt::format("{} ({} steps{})", run.path, run.step, run.config.train.ema ? ", averaged weights" : "");
}

}  // namespace lockstep

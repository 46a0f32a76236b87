// lockstep inspect CONFIG or CHECKPOINT: layers, operations and memory of a model, the content of a checkpoint, and the
// largest batch that fits.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "core/text_file.h"
#include "train/config_batch.h"
#include "train/config_path.h"
#include "train/inspect/checkpoint_content.h"
#include "train/inspect/fit.h"
#include "train/inspect/memory_table.h"
#include "train/inspect/model_table.h"
#include "train/memory_check.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string what, fit, output;
  std::vector<std::string> set;
  std::vector<int64_t> batch_sizes;
  int64_t world_size = 0;
  bool tensors = false;
};

bool is_config(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

uint64_t fit_bytes(const std::string& wanted, int64_t world_size) {
  if (wanted != "auto") return parse_bytes(wanted);
  const NodeMemory node = node_memory(process_environment);
  const uint64_t available = std::min(node.free, node.granted.value_or(node.free));
  const uint64_t of_rank = available / 10 * 9 / static_cast<uint64_t>(world_size);
  if (of_rank <= kProgramBytes)
    throw_error(
        "--fit auto: nine tenths of {} ({}) for {} ranks are less than the {} that each takes for the program "
        "itself: start fewer ranks per node, or ask for more memory",
        bytes_text(available), node.why, world_size, bytes_text(kProgramBytes));
  return of_rank - kProgramBytes;
}

int fit_batch(const Options& options, const Config& config, const DataFacts& data, int64_t world_size,
              Backend& backend) {
  const uint64_t bytes = fit_bytes(options.fit, world_size);
  const Fit fit = largest_batch(config, data, world_size, bytes, backend);
  std::printf("largest batch of a rank within %s: %lld; %s; it needs %s\n", bytes_text(bytes).c_str(),
              static_cast<long long>(fit.batch_size), resolve_batch(fit.config.train, world_size).line().c_str(),
              bytes_text(fit.estimate.total()).c_str());
  if (fit.config.eval.batch_size != config.eval.batch_size)
    std::printf("eval.batch_size: %lld -> %lld\n", static_cast<long long>(config.eval.batch_size),
                static_cast<long long>(fit.config.eval.batch_size));
  if (options.output.empty()) return kSuccess;
  write_text_file(options.output, to_yaml_at(fit.config, options.output));
  std::printf("%s: the config with it\n", options.output.c_str());
  return kSuccess;
}

int inspect(const Options& options) {
  Config config;
  DataFacts data;
  if (is_config(options.what)) {
    config = load_config(options.what, options.set);
    data = read_data_facts(config);
  } else {
    const SavedRun run = read_saved_run(options.what, options.set);
    std::printf("%s\n", checkpoint_text(run, options.tensors).c_str());
    config = run.config;
    data.train = training_data_info(run);
  }
  const int64_t world_size = options.world_size > 0 ? options.world_size : config.distributed.world_size.value_or(1);
  const std::unique_ptr<Backend> backend = make_cpu_backend({.winograd = config.device.convolution != "direct"});
  if (!options.fit.empty()) return fit_batch(options, config, data, world_size, *backend);
  std::printf("%s\n", model_text(model_table(config, data.train.sample_shape)).c_str());
  std::vector<int64_t> batches = options.batch_sizes;
  const int64_t own = resolve_batch(config.train, world_size).batch_size;
  if (batches.empty()) batches = {own, 2 * own, 4 * own, 8 * own};
  std::fputs(memory_text(config, data, world_size, batches, *backend).c_str(), stdout);
  if (!is_config(options.what)) std::puts("(without data sets and evaluation: a checkpoint doesn't hold the data)");
  return kSuccess;
}

}  // namespace

Command add_inspect(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "inspect", "Print layers, operations and memory of a config or checkpoint; starts no ranks, trains nothing");
  command->add_option("WHAT", options->what, "A config (.yaml), a checkpoint, a last or best file, or a run directory")
      ->required();
  command->add_option("--set", options->set, "Override a key: --set train.ema=0.99")->allow_extra_args(false);
  command->add_option("--world-size", options->world_size, "Ranks that share the work (default: the config's, or 1)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--batch", options->batch_sizes, "Batch sizes of the memory table: 16,64,256")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 30));
  command->add_flag("--tensors", options->tensors, "Every tensor of a checkpoint");
  auto* fit = command->add_option("--fit", options->fit,
                                  "Only find the largest batch of a rank within so much memory: 4GiB, or auto for what "
                                  "this machine can give --world-size ranks now");
  command->add_option("-o,--out", options->output, "With --fit: write the config with that batch here")->needs(fit);
  command->footer("The memory is what training holds beside the program itself; see docs/after_training.md.");
  return [options] { return inspect(*options); };
}

}  // namespace lockstep::app

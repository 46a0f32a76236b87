// lockstep lr-find CONFIG: the learning-rate range test, its picture, and the config with the rate that it suggests.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/ranks.h"
#include "comm/run_agreed.h"
#include "core/text_file.h"
#include "report/run_data.h"
#include "train/config_path.h"
#include "train/resources.h"
#include "train/settings/lr_find.h"
#include "train/trainer.h"

namespace lockstep::app {
namespace {

struct Options {
  std::string file, output;
  std::vector<std::string> set;
  LrRange range;
};

int lr_find(const Options& options, const MpiEnvironment& mpi) {
  Config config, test;
  std::string dir;
  run_agreed(mpi.world(), [&] {
    config = load_config(options.file, options.set);
    dir = resolve_path(config, config.run.dir) + "/lr_find";
    test = lr_find_config(config, options.range, dir);
  });
  const Resources resources = claim_resources(test, mpi);
  {
    std::unique_ptr<RunLog> log;
    run_agreed(*resources.communicator, [&] { log = std::make_unique<RunLog>(dir, mpi.rank() == 0); });
    Trainer(test, *resources.backend, *resources.communicator, *log).run();
  }
  run_agreed(*resources.communicator, [&] {
    if (mpi.rank() != 0) return;
    std::vector<double> rates, losses;
    for (const StepLine& line : read_run_data(dir).steps) rates.push_back(line.lr), losses.push_back(line.loss);
    const double scale = rates.front() / options.range.from;  // of optimizer.lr_reference_batch
    const LrCurve curve = lr_curve(std::move(rates), std::move(losses));
    const LrChoice choice = choose_rate(curve);
    write_text_file(dir + "/lr_find.svg", lr_find_svg(curve, choice));
    std::printf(
        "the loss falls fastest at a rate of %.3g and is least at %.3g; chosen: optimizer.lr %.3g\n%s/lr_find.svg\n",
        choice.steepest, choice.minimum, choice.chosen / scale, dir.c_str());
    if (options.output.empty()) return;
    config.optimizer.lr = choice.chosen / scale;
    if (config.schedule.kind == "one_cycle") config.schedule.max_lr = choice.chosen;
    write_text_file(options.output, to_yaml_at(config, options.output));
    std::printf("%s: the config with it\n", options.output.c_str());
  });
  return kSuccess;
}

}  // namespace

Command add_lr_find(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("lr-find", "Find a learning rate: a short training whose rate grows");
  command->add_option("CONFIG", options->file, "YAML file")->required();
  command->add_option("--set", options->set, "Override a key: --set train.batch_size=8")->allow_extra_args(false);
  command->add_option("--from", options->range.from, "First rate")->capture_default_str();
  command->add_option("--to", options->range.to, "Last rate")->capture_default_str();
  command->add_option("--steps", options->range.steps, "Optimizer steps")->capture_default_str();
  command->add_option("--out", options->output, "Write the config with the rate found into this file");
  command->footer("The picture is run.dir/lr_find/lr_find.svg; see docs/settings.md.");
  return [options] { return on_ranks([&](const MpiEnvironment& mpi) { return lr_find(*options, mpi); }); };
}

}  // namespace lockstep::app

// lockstep plan CONFIG: what a run would do on given numbers of ranks, without MPI and without training.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "train/batch_norm_plan.h"
#include "train/plan_report.h"
#include "train/translate.h"

namespace lockstep::app {
namespace {

// The order of DataLoader(shuffle=True) depends on what was drawn before it: data, then initial weights.
Generator after_initialisation(const Config& config, Generator generator, const Dataset& train) {
  if (config.sampler.generator != "global") return generator;
  if (config.data.val) make_dataset(config, *config.data.val, 0, generator);
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  Network network(model_spec(config), train.sample_shape(), *backend, 2);  // a batch norm refuses 1
  network.lay_out(Buffer::host);
  network.initialize(generator);
  return generator;
}

int plan(const Config& config, const std::vector<int64_t>& world_sizes) {
  Generator generator(initial_seed(config, 0));
  const std::unique_ptr<Dataset> train = make_dataset(config, config.data.train, 0, generator);
  const SamplerSettings sampler = sampler_settings(config, after_initialisation(config, generator, *train));
  // Data of the ranks' own: as many sets as ranks.
  const auto own = [&](int64_t world_size) {
    std::vector<int64_t> sizes;
    for (int64_t rank = 0; rank < world_size && train->per_rank(); ++rank) {
      Generator unused(0);
      sizes.push_back(make_dataset(config, config.data.train, static_cast<int>(rank), unused)->size());
    }
    return sizes;
  };
  const auto spec = [&](int64_t world_size) {
    return data_plan_spec(config, train->size(), own(world_size), world_size);
  };
  std::string report;
  if (config.train.global_batch_size || train->per_rank()) {
    // batch_size or the number of samples depends on world_size: a table for each.
    for (int64_t world_size : world_sizes)
      report += plan_report(spec(world_size), std::span(&world_size, 1), sampler) + "\n";
  } else {
    report = plan_report(spec(world_sizes[0]), world_sizes, sampler);
  }
  const std::vector<BatchNormSite> norms = batch_norm_sites(model_spec(config), train->sample_shape());
  for (const int64_t world_size : world_sizes) {
    const bool across_ranks = config.distributed.batch_norm == "sync" && world_size > 1;
    if (const std::string text = one_value_text(DataPlan(spec(world_size)), norms, across_ranks); !text.empty())
      report += fmt::format("WARNING world_size {}: {}\n", world_size, text);
  }
  std::fputs(report.c_str(), stdout);
  return kSuccess;
}

}  // namespace

Command add_plan(CLI::App& parent) {
  struct Options {
    std::string file;
    std::vector<std::string> set;
    std::vector<int64_t> world_sizes;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("plan", "Print samples, padding and steps per world size; starts no ranks");
  command->add_option("CONFIG", options->file, "YAML file")->required();
  command->add_option("--set", options->set, "Override a key: --set train.batch_size=8")->allow_extra_args(false);
  command->add_option("--world-size", options->world_sizes, "Numbers of ranks: 1,2,4,8")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  return [options] {
    const Config config = load_config(options->file, options->set);
    std::vector<int64_t> world_sizes = options->world_sizes;
    if (config.train.virtual_ranks) {
      std::printf("the same on 1, 2, 4, ... or %lld ranks; world_size below: the virtual ranks\n\n",
                  static_cast<long long>(*config.train.virtual_ranks));
      world_sizes = {*config.train.virtual_ranks};
    } else if (world_sizes.empty())
      world_sizes = config.distributed.world_size ? std::vector{*config.distributed.world_size}
                                                  : std::vector<int64_t>{1, 2, 4, 8};
    return plan(config, world_sizes);
  };
}

}  // namespace lockstep::app

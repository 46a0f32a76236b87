// bench_step CONFIG: the bare optimizer step of a configuration, timed and counted, alone or under mpirun. Prints one
// JSON line (step_result.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <tuple>

#include "bench/step_result.h"
#include "comm/abort_all.h"
#include "comm/malloc_policy.h"
#include "comm/mpi_env.h"
#include "comm/serial_communicator.h"
#include "core/cpu_features.h"
#include "core/error.h"
#include "core/log.h"
#include "dist/replica_check.h"
#include "train/config_batch.h"
#include "train/evaluator.h"
#include "train/resources.h"
#include "train/stepper.h"
#include "train/trainer.h"
#include "train/translate.h"

namespace lockstep::bench {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> set;
  int64_t loss_steps = 0, warmup = 50, steps = 1000, blocks = 20;
  bool independent = false, mark = false;
};

double validation_loss(const Config& config, Trainer& trainer, Backend& backend, Communicator& communicator) {
  if (!config.data.val) throw_error("--loss-steps: data.val is missing");
  Generator generator(config.run.seed);
  const auto data = make_dataset(config, *config.data.val, communicator.rank(), generator);
  return Evaluator(*data, trainer.network(), backend, communicator,
                   deal_virtual_ranks({}, communicator.rank(), communicator.size()), loss_spec(config.train),
                   config.eval.batch_size)
      .run()
      ->loss;
}

// Lines that tell a reader of oneDNN's messages which of them belong to the timed steps.
void mark(const Options& options, const char* what) {
  if (options.mark) std::printf("steady steps: %s\n", what), std::fflush(stdout);
}

// A GPU is done with what it was told when synchronize() returns; on a CPU everything is done anyway.
void measure_blocks(const Options& options, Stepper& stepper, Backend& backend, MPI_Comm world, StepResult& result) {
  using Clock = std::chrono::steady_clock;
  const int64_t blocks = std::clamp<int64_t>(options.blocks, 1, options.steps), in_block = options.steps / blocks;
  result.steps = blocks * in_block;
  result.block_us.assign(static_cast<size_t>(blocks), 0);
  MPI_Barrier(world);
  // Nothing that allocates comes between the warm-up and the timed steps: it would move the blocks that oneDNN takes
  // from the heap in each call, once, to pages that were never touched.
  stepper.run(options.warmup);
  backend.synchronize();
  mark(options, "begin");
  const Counts before = counts_now();
  for (double& us : result.block_us) {
    const auto start = Clock::now();
    stepper.run(in_block);
    backend.synchronize();
    us = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / static_cast<double>(in_block);
  }
  const Counts after = counts_now();
  mark(options, "end");
  result.before_steady = before;
  result.in_steady = {.page_faults = after.page_faults - before.page_faults,
                      .allocations = {.own = after.allocations.own - before.allocations.own,
                                      .onednn = after.allocations.onednn - before.allocations.onednn,
                                      .mpi = after.allocations.mpi - before.allocations.mpi}};
}

// A training per rank: nothing is agreed on with the others.
Resources claim_alone(const Config& config, const MpiEnvironment& mpi) {
  if (config.device.kind == "cuda") throw_error("--independent: expected device.kind cpu or auto, found cuda");
  Resources made;
  made.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : mpi.threads();
  made.backend = make_cpu_backend({.threads = made.threads,
                                   .flush_denormals = config.device.flush_denormals,
                                   .winograd = config.device.convolution != "direct"});
  made.communicator = std::make_unique<SerialCommunicator>();
  return made;
}

void run(const Options& options, const MpiEnvironment& mpi) {
  const Config config = load_config(options.file, options.set);
  StepResult result{.independent = options.independent, .isa = std::string(name(detect_isa()))};
  const Resources resources = options.independent ? claim_alone(config, mpi) : claim_resources(config, mpi);
  const auto& [backend, communicator] = std::tie(resources.backend, resources.communicator);
  result.threads = resources.threads;
  result.device = backend->name();
  const Arithmetic arithmetic = backend->arithmetic(activation_type(config.train));
  result.arithmetic = arithmetic.text;
  result.native = arithmetic.missing.empty();
  result.world_size = communicator->size();
  result.communicator = communicator->name();
  result.batch = resolve_batch(config.train, communicator->size()).batch_size;

  RunLog log(config.run.dir, false);
  // As in a run, a step includes asking whether it is to be the last (run.stop_signals=[] leaves that out).
  Trainer trainer(config, *backend, *communicator, log, {},
                  stop_sources(config.run, communicator->rank(), std::chrono::steady_clock::now()));
  broadcast_model(trainer.network().store(), *communicator);
  Stepper stepper(trainer);
  if (options.loss_steps > 0) {
    stepper.run(options.loss_steps);
    result.loss_steps = options.loss_steps;
    result.loss = validation_loss(config, trainer, *backend, *communicator);
  }
  stepper.run(1);  // loads what is loaded on first use
  find_allocating_libraries();
  measure_blocks(options, stepper, *backend, mpi.world(), result);
  const std::string line = to_json(result, mpi.world());
  if (mpi.rank() == 0) std::printf("%s\n", line.c_str());
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  static char output[1 << 12];  // else the first line printed would allocate one, in the middle of the count
  std::setvbuf(stdout, output, _IOLBF, sizeof output);
  using namespace lockstep;
  bench::Options options;
  CLI::App app{"Times and counts the bare training step of a configuration"};
  app.add_option("CONFIG", options.file, "YAML file")->required();
  app.add_option("--set", options.set, "Override a key: --set train.batch_size=8");
  app.add_option("--loss-steps", options.loss_steps, "First train this many steps and report the validation loss");
  app.add_option("--warmup", options.warmup, "Steps before the timed ones")->capture_default_str();
  app.add_option("--steps", options.steps, "Timed steps")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--blocks", options.blocks, "Blocks of steps that are timed one by one")->capture_default_str();
  app.add_flag("--independent", options.independent, "Each rank trains on its own, at the same time");
  app.add_flag("--mark", options.mark, "Print a line before and after the timed steps");
  CLI11_PARSE(app, argc, argv);

  keep_large_blocks();
  MpiEnvironment mpi;
  log::setup(mpi.rank(), mpi.size(), {.quiet = true});
  try {
    bench::run(options, mpi);
    return 0;
  } catch (const std::exception& error) {
    if (mpi.size() > 1) abort_all(mpi.world(), 1, error);
    std::fprintf(stderr, "bench_step: %s\n", error.what());
    return 1;
  }
}

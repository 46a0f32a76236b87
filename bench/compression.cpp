// bench_compression CONFIG: what rounding gradients to 16 bits does to their sum. Trains with exact sums, and beside
// each one also makes those with bf16 and fp16 on the wire from the same gradients. Prints one JSON line: the relative
// L2 error of the whole gradient, over all steps, and what overflowed or became zero.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "comm/abort_all.h"
#include "comm/factory.h"
#include "core/log.h"
#include "dist/replica_check.h"
#include "train/trainer.h"

namespace lockstep::bench {
namespace {

struct Error16 {
  WireFormat wire;
  double squared = 0, worst_step = 0;  // sum over the gradient's elements and steps; relative, of one step
  int64_t overflowed = 0, vanished = 0;
  double squared_in_step = 0;
};

// Another communicator, with exact sums, that also makes the others.
class Meter final : public Communicator {
 public:
  explicit Meter(Communicator& real) : real_(real) {}
  std::string_view name() const override { return real_.name(); }
  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  Buffer allocate(size_t bytes) override { return real_.allocate(bytes); }
  void all_reduce_sum(std::span<float> values) override {
    const std::vector<float> mine(values.begin(), values.end());
    real_.all_reduce_sum(values);
    for (const float exact : values) norm_in_step_ += static_cast<double>(exact) * exact;
    for (Error16& error : errors_) {
      std::vector<float> rounded = mine;
      real_.all_reduce_sum_in(error.wire, rounded);
      for (size_t i = 0; i < rounded.size(); ++i) add(error, values[i], rounded[i]);
    }
  }
  void all_reduce(std::span<double> values, ReduceOp op) override { real_.all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { real_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return real_.all_gather(mine);
  }
  void barrier() override { real_.barrier(); }

  void end_step() {
    for (Error16& error : errors_) {
      error.squared += error.squared_in_step;
      error.worst_step = std::max(error.worst_step, std::sqrt(error.squared_in_step / norm_in_step_));
      error.squared_in_step = 0;
    }
    norm_ += norm_in_step_;
    norm_in_step_ = 0;
  }

  std::string to_json(int64_t steps) const {
    nlohmann::ordered_json json{{"world_size", size()}, {"communicator", name()}, {"steps", steps}};
    for (const Error16& error : errors_)
      json[std::string(lockstep::name(error.wire))] = {{"relative_l2_error", std::sqrt(error.squared / norm_)},
                                                       {"worst_step", error.worst_step},
                                                       {"overflowed", error.overflowed},
                                                       {"vanished", error.vanished}};
    return json.dump();
  }

 private:
  static void add(Error16& error, float exact, float rounded) {
    error.overflowed += std::isfinite(exact) && !std::isfinite(rounded);
    error.vanished += exact != 0 && rounded == 0;
    const double difference = static_cast<double>(rounded) - exact;
    error.squared_in_step += difference * difference;
  }

  Communicator& real_;
  std::vector<Error16> errors_{{.wire = WireFormat::bf16}, {.wire = WireFormat::fp16}};
  double norm_ = 0, norm_in_step_ = 0;
};

void run(const std::string& file, const std::vector<std::string>& set, int64_t steps, const MpiEnvironment& mpi) {
  const Config config = load_config(file, set);
  const auto backend =
      make_cpu_backend({.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : mpi.threads(),
                        .flush_denormals = config.device.flush_denormals});
  const auto real = make_communicator(config.distributed.backend, mpi, config.distributed.timeout, nullptr);
  Meter meter(*real);
  RunLog log(config.run.dir, false);
  Trainer trainer(config, *backend, meter, log);
  broadcast_model(trainer.network().store(), meter);
  const int64_t in_epoch = trainer.plan().epoch().steps();
  for (int64_t step = 0; step < steps; ++step) {
    if (step % in_epoch == 0) trainer.begin_epoch(step / in_epoch);
    trainer.train_step(step % in_epoch);
    meter.end_step();
  }
  if (mpi.rank() == 0) std::printf("%s\n", meter.to_json(steps).c_str());
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  using namespace lockstep;
  std::string file;
  std::vector<std::string> set;
  int64_t steps = 100;
  CLI::App app{"Errors of gradients that travel in 16 bits"};
  app.add_option("CONFIG", file, "YAML file")->required();
  app.add_option("--set", set, "Override a key")->allow_extra_args(false);
  app.add_option("--steps", steps, "Optimizer steps");
  CLI11_PARSE(app, argc, argv);
  const MpiEnvironment mpi;
  log::setup(mpi.rank(), mpi.size(), {.quiet = true});
  try {
    bench::run(file, set, steps, mpi);
  } catch (const std::exception& error) {
    abort_all(mpi.world(), 1, error);
  }
  return 0;
}

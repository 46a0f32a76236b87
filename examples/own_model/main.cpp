// A layer and a data set of one's own, trained on as many ranks as mpirun starts: mpirun -np 2 own_model [RUN_DIR]
#include <cmath>

#include "comm/abort_all.h"
#include "core/log.h"
#include "nn/layer.h"
#include "train/resources.h"
#include "train/summary.h"

using namespace lockstep;

// Points of two spirals that wind around each other; which one they belong to is the label.
class Spirals final : public Dataset {
 public:
  explicit Spirals(int64_t first) : Dataset({.size = 1000, .sample_shape = Shape{2}, .classes = 2}), first_(first) {}
  void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t row = rows[i] + offset;
      const double radius = std::fmod(static_cast<double>(first_ + row) * 0.618034, 1.0);
      const double angle = 9 * radius + M_PI * static_cast<double>(row % 2);
      out.x[2 * i] = static_cast<float>((radius + 0.1) * std::cos(angle));
      out.x[2 * i + 1] = static_cast<float>((radius + 0.1) * std::sin(angle));
      out.labels[i] = row % 2;
    }
  }

 private:
  int64_t first_;  // other points for validation
};

// y = sin(f x), the frequency f learned.
class Sine final : public Layer {
 public:
  std::string_view kind() const override { return "sine"; }
  Shape infer(std::span<const Shape> inputs) override { return inputs[0]; }
  std::vector<ParameterSpec> parameters() const override { return {{"frequency", Shape{1}}}; }
  void initialize(Generator&, std::span<const std::span<float>> parameters,
                  std::span<const std::span<float>>) const override {
    parameters[0][0] = 3;
  }
  Binding bind(BindContext& context) override {
    count_ = static_cast<size_t>(context.inputs[0].shape.numel());
    return {.output = context.inputs[0]};
  }
  void forward(const Io& io) override {
    for (size_t i = 0; i < count_; ++i) io.f32_y()[i] = std::sin(*io.parameters[0] * io.f32_x()[i]);
  }
  void backward(const Io& io) override {
    double gradient = io.accumulate ? *io.gradients[0] : 0;
    for (size_t i = 0; i < count_; ++i) {
      const float slope = io.f32_dy()[i] * std::cos(*io.parameters[0] * io.f32_x()[i]);
      gradient += slope * io.f32_x()[i];
      io.f32_dx()[i] = slope * *io.parameters[0];
    }
    *io.gradients[0] = static_cast<float>(gradient);
  }

 private:
  size_t count_ = 0;
};

int main(int argc, char** argv) {
  MpiEnvironment mpi;
  try {
    log::setup(mpi.rank(), mpi.size());
    Config config;  // every key of the YAML file is a member; load_config reads one
    const auto sine = [](const LayerSpec&) { return std::make_unique<Sine>(); };
    config.model.layers = {{.kind = "linear", .out = 64},
                           {.kind = "sine", .make = sine},
                           {.kind = "linear", .out = 64},
                           {.kind = "sine", .make = sine},
                           {.kind = "linear", .out = 2}};
    config.data.train = {.kind = "spirals", .make = [](int) { return std::make_unique<Spirals>(0); }};
    config.data.val = {.kind = "spirals", .make = [](int) { return std::make_unique<Spirals>(1000); }};
    config.optimizer.kind = "adam";
    config.optimizer.lr = 1e-3;
    config.train.epochs = 20;
    config.train.global_batch_size = 32;  // the same result on 1, 2, 4 ... ranks
    config.run.dir = argc > 1 ? argv[1] : "runs/own_model";
    const Resources resources = claim_resources(config, mpi);
    RunLog log(config.run.dir, mpi.rank() == 0);
    Trainer trainer(config, *resources.backend, *resources.communicator, log);
    log::info("{}", summary_table(trainer.run()));
  } catch (const std::exception& error) {
    abort_all(mpi.world(), 1, error);
  }
}

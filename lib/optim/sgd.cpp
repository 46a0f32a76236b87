// Stochastic gradient descent with momentum, dampening, Nesterov and coupled weight decay.
#include "core/error.h"
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(OptimizerInit init) : Optimizer(std::move(init)) {
    if (settings().momentum > 0 || settings().momentum_scheduled) buffer_ = add_state("momentum_buffer");
  }

 private:
  bool can_gain_momentum() const override { return buffer_ != nullptr; }

  void update(const Range& r) override {
    const SgdArgs args{.lr = r.lr,
                       .momentum = r.momentum,
                       .dampening = settings().dampening,
                       .weight_decay = r.weight_decay,
                       .nesterov = settings().nesterov,
                       .maximize = settings().maximize,
                       .first_step = step_count() == 1};
    ops().sgd(args, r.count, r.p, r.g, at_offset(buffer_, r.offset));
  }

  float* buffer_ = nullptr;
};

}  // namespace

void check_sgd(const OptimizerSettings& settings) {
  require_fraction("momentum", settings.momentum);
  const bool momentum = settings.momentum > 0 || settings.momentum_scheduled;
  if (settings.nesterov && !(momentum && settings.dampening == 0))
    throw_error("optimizer.nesterov: needs momentum above 0 and dampening 0, found momentum {} and dampening {}",
                settings.momentum, settings.dampening);
  if (!momentum && settings.dampening != 0) throw_error("optimizer.dampening: has no effect without momentum");
}

std::unique_ptr<Optimizer> build_sgd(OptimizerInit init) { return std::make_unique<Sgd>(std::move(init)); }

}  // namespace lockstep

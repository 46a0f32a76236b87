// RMSprop, plain or centered, with or without momentum.
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

class Rmsprop final : public Optimizer {
 public:
  explicit Rmsprop(OptimizerInit init) : Optimizer(std::move(init)) {
    square_avg_ = add_state("square_avg");
    if (settings().centered) grad_avg_ = add_state("grad_avg");
    if (settings().momentum > 0 || settings().momentum_scheduled) buffer_ = add_state("momentum_buffer");
  }

 private:
  bool can_gain_momentum() const override { return buffer_ != nullptr; }

  void update(const Range& r) override {
    const RmspropArgs args{.lr = r.lr,
                           .alpha = settings().alpha,
                           .eps = settings().eps.value(),
                           .weight_decay = r.weight_decay,
                           .momentum = r.momentum,
                           .centered = settings().centered,
                           .maximize = settings().maximize};
    ops().rmsprop(args, r.count, r.p, r.g, square_avg_ + r.offset, at_offset(grad_avg_, r.offset),
                  at_offset(buffer_, r.offset));
  }

  float *square_avg_ = nullptr, *grad_avg_ = nullptr, *buffer_ = nullptr;
};

}  // namespace

void check_rmsprop(const OptimizerSettings& settings) {
  require_fraction("momentum", settings.momentum);
  require_unit("alpha", settings.alpha);
}

std::unique_ptr<Optimizer> build_rmsprop(OptimizerInit init) { return std::make_unique<Rmsprop>(std::move(init)); }

}  // namespace lockstep

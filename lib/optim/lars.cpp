// LARS: SGD whose gradient is scaled parameter by parameter by a trust ratio (trust_ratio.h).
#include <cmath>

#include "core/error.h"
#include "optim/optimizer_kinds.h"
#include "optim/trust_ratio.h"

namespace lockstep {
namespace {

class Lars final : public Optimizer {
 public:
  explicit Lars(OptimizerInit init) : Optimizer(std::move(init)) {
    if (settings().momentum > 0 || settings().momentum_scheduled) buffer_ = add_state("momentum_buffer");
  }

  bool reads_back() const override { return true; }

 private:
  bool can_gain_momentum() const override { return buffer_ != nullptr; }

  void update(const Range& r) override {
    const double ratio = r.adapt ? trust(r) : 1;
    const SgdArgs args{.lr = r.lr,
                       .momentum = r.momentum,
                       .dampening = 0,
                       .weight_decay = ratio * r.weight_decay,
                       .gradient_scale = ratio,
                       .nesterov = settings().nesterov,
                       .maximize = settings().maximize,
                       .first_step = step_count() == 1};
    ops().sgd(args, r.count, r.p, r.g, at_offset(buffer_, r.offset));
  }

  double trust(const Range& r) const {
    return lars_trust_ratio(settings().trust_coefficient, std::sqrt(ops().sum_of_squares(r.count, r.p)),
                            std::sqrt(ops().sum_of_squares(r.count, r.g)), r.weight_decay, settings().eps.value());
  }

  float* buffer_ = nullptr;
};

}  // namespace

void check_lars(const OptimizerSettings& settings) {
  require_fraction("momentum", settings.momentum);
  if (!(settings.trust_coefficient > 0) || std::isinf(settings.trust_coefficient))
    throw_error("optimizer.trust_coefficient: expected a number above 0, found {}", settings.trust_coefficient);
  if (settings.nesterov && settings.momentum == 0 && !settings.momentum_scheduled)
    throw_error("optimizer.nesterov: needs momentum above 0");
}

std::unique_ptr<Optimizer> build_lars(OptimizerInit init) { return std::make_unique<Lars>(std::move(init)); }

}  // namespace lockstep

// LARS: SGD whose gradient is scaled parameter by parameter by a trust ratio
// (backend/trust_ratio.h).
#include <cmath>

#include "core/error.h"
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

class Lars final : public Optimizer {
 public:
  explicit Lars(OptimizerInit init) : Optimizer(std::move(init)) {
    if (settings().momentum > 0 || settings().momentum_scheduled) buffer_ = add_state("momentum_buffer");
    norms_ = range_norms();
  }

  bool numbers_per_parameter() const override { return true; }

 private:
  bool can_gain_momentum() const override { return buffer_ != nullptr; }

  void prepared(const float* parameters, const float* gradients) override {
    norms_->lars_ratios(parameters, gradients, settings().trust_coefficient, settings().eps.value());
  }
  void update(const Range& r) override {
    const SgdArgs args{.lr = r.lr,
                       .momentum = r.momentum,
                       .dampening = 0,
                       .weight_decay = r.weight_decay,
                       .nesterov = settings().nesterov,
                       .maximize = settings().maximize,
                       .first_step = step_count() == 1};
    norms_->sgd_by_ratio(r.index, args, r.p, r.g, at_offset(buffer_, r.offset));
  }

  float* buffer_ = nullptr;
  std::unique_ptr<SliceNorms> norms_;
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

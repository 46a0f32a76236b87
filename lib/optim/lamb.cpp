// LAMB: Adam's direction with decoupled weight decay, its length set parameter by parameter by a trust ratio
// (backend/trust_ratio.h).
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

class Lamb final : public Optimizer {
 public:
  explicit Lamb(OptimizerInit init) : Optimizer(std::move(init)) {
    exp_avg_ = add_state("exp_avg");
    exp_avg_sq_ = add_state("exp_avg_sq");
    direction_ = add_scratch(arena_size());
    norms_ = range_norms();
  }

  bool numbers_per_parameter() const override { return true; }

 private:
  void prepare(const Range& r) override {
    const LambArgs args{.beta1 = r.momentum,
                        .beta2 = settings().beta2,
                        .eps = settings().eps.value(),
                        .weight_decay = r.weight_decay,
                        .maximize = settings().maximize,
                        .t = step_count()};
    ops().lamb_direction(args, r.count, r.p, r.g, exp_avg_ + r.offset, exp_avg_sq_ + r.offset, direction_ + r.offset);
  }
  void prepared(const float* parameters, const float* /*gradients*/) override {
    norms_->lamb_ratios(parameters, direction_);
  }
  void update(const Range& r) override { norms_->step_by_ratio(r.index, r.lr, r.p, direction_ + r.offset); }

  float *exp_avg_ = nullptr, *exp_avg_sq_ = nullptr;
  float* direction_ = nullptr;  // of all parameters: their norms are summed together
  std::unique_ptr<SliceNorms> norms_;
};

}  // namespace

std::unique_ptr<Optimizer> build_lamb(OptimizerInit init) { return std::make_unique<Lamb>(std::move(init)); }

}  // namespace lockstep

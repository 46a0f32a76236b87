// Adam with coupled and AdamW with decoupled weight decay, both with amsgrad.
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

class Adam final : public Optimizer {
 public:
  explicit Adam(OptimizerInit init) : Optimizer(std::move(init)) {
    exp_avg_ = add_state("exp_avg");
    exp_avg_sq_ = add_state("exp_avg_sq");
    if (settings().amsgrad) max_exp_avg_sq_ = add_state("max_exp_avg_sq");
  }

 private:
  void update(const Range& r) override {
    const AdamArgs args{.lr = r.lr,
                        .beta1 = r.momentum,
                        .beta2 = settings().beta2,
                        .eps = settings().eps.value(),
                        .weight_decay = r.weight_decay,
                        .decoupled = settings().kind == "adamw",
                        .amsgrad = settings().amsgrad,
                        .maximize = settings().maximize,
                        .t = step_count()};
    ops().adam(args, r.count, r.p, r.g, exp_avg_ + r.offset, exp_avg_sq_ + r.offset,
               at_offset(max_exp_avg_sq_, r.offset));
  }

  float *exp_avg_ = nullptr, *exp_avg_sq_ = nullptr, *max_exp_avg_sq_ = nullptr;
};

}  // namespace

void check_adam(const OptimizerSettings& settings) {
  require_fraction("beta1", settings.beta1);
  require_fraction("beta2", settings.beta2);
}

std::unique_ptr<Optimizer> build_adam(OptimizerInit init) { return std::make_unique<Adam>(std::move(init)); }

}  // namespace lockstep

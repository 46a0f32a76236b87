// LAMB: Adam's direction with decoupled weight decay, its length set parameter by parameter by a trust ratio
// (trust_ratio.h).
#include <algorithm>
#include <cmath>

#include "optim/optimizer_kinds.h"
#include "optim/trust_ratio.h"

namespace lockstep {
namespace {

class Lamb final : public Optimizer {
 public:
  explicit Lamb(OptimizerInit init) : Optimizer(std::move(init)) {
    exp_avg_ = add_state("exp_avg");
    exp_avg_sq_ = add_state("exp_avg_sq");
    size_t longest = 0;
    for (int i = 0; i < groups(); ++i)
      for (const ParameterRange& range : group(i).ranges) longest = std::max(longest, range.count);
    direction_ = add_scratch(longest);
  }

  bool reads_back() const override { return true; }

 private:
  void update(const Range& r) override {
    const LambArgs args{.beta1 = r.momentum,
                        .beta2 = settings().beta2,
                        .eps = settings().eps.value(),
                        .weight_decay = r.weight_decay,
                        .maximize = settings().maximize,
                        .t = step_count()};
    ops().lamb_direction(args, r.count, r.p, r.g, exp_avg_ + r.offset, exp_avg_sq_ + r.offset, direction_);
    const double ratio = r.adapt ? lamb_trust_ratio(std::sqrt(ops().sum_of_squares(r.count, r.p)),
                                                    std::sqrt(ops().sum_of_squares(r.count, direction_)))
                                 : 1;
    ops().sgd({.lr = r.lr * ratio}, r.count, r.p, direction_, nullptr);
  }

  float *exp_avg_ = nullptr, *exp_avg_sq_ = nullptr;
  float* direction_ = nullptr;  // of one parameter at a time
};

}  // namespace

std::unique_ptr<Optimizer> build_lamb(OptimizerInit init) { return std::make_unique<Lamb>(std::move(init)); }

}  // namespace lockstep

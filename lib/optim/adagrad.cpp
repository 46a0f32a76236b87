// Adagrad: steps shrink with the root of the sum of all squared gradients.
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(OptimizerInit init) : Optimizer(std::move(init)) {
    sum_ = add_state("sum");
    const std::span<float> sums = state().back().values;
    ops().fill(sums.size(), sums.data(), static_cast<float>(settings().initial_accumulator_value));
  }
  bool has_momentum() const override { return false; }

 private:
  void update(const Range& r) override {
    const AdagradArgs args{.lr = r.lr,
                           .lr_decay = settings().lr_decay,
                           .eps = settings().eps.value(),
                           .weight_decay = r.weight_decay,
                           .maximize = settings().maximize,
                           .t = step_count()};
    ops().adagrad(args, r.count, r.p, r.g, sum_ + r.offset);
  }

  float* sum_ = nullptr;
};

}  // namespace

void check_adagrad(const OptimizerSettings& settings) {
  require_non_negative("lr_decay", settings.lr_decay);
  require_non_negative("initial_accumulator_value", settings.initial_accumulator_value);
}

std::unique_ptr<Optimizer> build_adagrad(OptimizerInit init) { return std::make_unique<Adagrad>(std::move(init)); }

}  // namespace lockstep

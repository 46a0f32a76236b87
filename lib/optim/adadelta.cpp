// Adadelta: steps scaled by the running size of past steps over that of the gradients.
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(OptimizerInit init) : Optimizer(std::move(init)) {
    square_avg_ = add_state("square_avg");
    acc_delta_ = add_state("acc_delta");
  }
  bool has_momentum() const override { return false; }

 private:
  void update(const Range& r) override {
    const AdadeltaArgs args{.lr = r.lr,
                            .rho = settings().rho,
                            .eps = settings().eps.value(),
                            .weight_decay = r.weight_decay,
                            .maximize = settings().maximize};
    ops().adadelta(args, r.count, r.p, r.g, square_avg_ + r.offset, acc_delta_ + r.offset);
  }

  float *square_avg_ = nullptr, *acc_delta_ = nullptr;
};

}  // namespace

void check_adadelta(const OptimizerSettings& settings) { require_unit("rho", settings.rho); }

std::unique_ptr<Optimizer> build_adadelta(OptimizerInit init) { return std::make_unique<Adadelta>(std::move(init)); }

}  // namespace lockstep

// Elementwise losses: a sum over elements in double, and its gradient. The plan's weight is the number of elements.
#include "backend/cpu/loss.h"

#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_plans.h"
#include "backend/loss_functors.h"
#include "core/error.h"

namespace lockstep {

namespace {

template <class Function>
class ElementwiseLoss final : public LossPlan {
 public:
  // weights: those that the function points to, if any.
  ElementwiseLoss(Function function, int64_t batch, int64_t classes, std::vector<float> weights = {})
      : function_(function), weights_(std::move(weights)), batch_(batch), classes_(classes) {
    if constexpr (requires { function_.pos_weight; })
      function_.pos_weight = weights_.empty() ? nullptr : weights_.data();
  }
  LossSums forward(const TensorView& output, const TensorView& target) override {
    return run(output, target, 0, nullptr);
  }
  LossSums forward_backward(const TensorView& output, const TensorView& target, double scale,
                            float* d_output) override {
    return run(output, target, scale, d_output);
  }

 private:
  LossSums run(const TensorView& output, const TensorView& target, double scale, float* d_output) const {
    const int64_t rows = check_loss_output(Function::kName, output, batch_, classes_);
    check_dense_target(Function::kName, output, target);
    const float *x = output.f32(), *t = target.f32();
    LossSums sums{.loss = 0, .weight = static_cast<double>(rows * classes_)};
    size_t i = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t column = 0; column < static_cast<size_t>(classes_); ++column, ++i) {
        const double value = x[i], wanted = t[i];
        sums.loss += function_.value(value, wanted, column);
        if (d_output != nullptr) d_output[i] = static_cast<float>(scale * function_.slope(value, wanted, column));
      }
    }
    return sums;
  }

  Function function_;
  std::vector<float> weights_;
  int64_t batch_, classes_;
};

}  // namespace

std::unique_ptr<LossPlan> make_cpu_loss(const LossSpec& spec, int64_t batch, int64_t classes) {
  check_loss_spec(spec, batch, classes);
  switch (spec.kind) {
    case LossSpec::Kind::cross_entropy: return make_cpu_cross_entropy(spec, batch, classes);
    case LossSpec::Kind::mse: return std::make_unique<ElementwiseLoss<SquaredError>>(SquaredError{}, batch, classes);
    case LossSpec::Kind::l1: return std::make_unique<ElementwiseLoss<AbsoluteError>>(AbsoluteError{}, batch, classes);
    case LossSpec::Kind::smooth_l1:
      return std::make_unique<ElementwiseLoss<SmoothAbsoluteError>>(SmoothAbsoluteError{spec.beta}, batch, classes);
    case LossSpec::Kind::bce_with_logits:
      return std::make_unique<ElementwiseLoss<LogisticLoss>>(LogisticLoss{nullptr}, batch, classes, spec.class_weights);
  }
  throw_error("loss: unknown kind {}", static_cast<int>(spec.kind));
}

}  // namespace lockstep

// Elementwise losses: a sum over elements in double, and its gradient. The plan's weight is the number of elements.
#include "backend/cpu/loss.h"

#include <cmath>
#include <memory>

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"

namespace lockstep {

int64_t check_loss_output(std::string_view loss, const TensorView& output, int64_t batch, int64_t classes) {
  const TensorDesc& desc = output.desc;
  if (desc.dtype != DType::f32 || desc.channel_block != 1 || desc.shape.rank() < 1)
    throw_error("{}: expected an f32 output [n, {}], found {}", loss, classes, desc.shape.str());
  const int64_t rows = desc.shape[0];
  if (rows > batch || desc.shape.numel() != rows * classes)
    throw_error("{}: expected an output of at most {} rows of {} values, found {}", loss, batch, classes,
                desc.shape.str());
  return rows;
}

void check_dense_target(std::string_view loss, const TensorView& output, const TensorView& target) {
  if (target.desc.dtype != DType::f32 || target.numel() != output.numel())
    throw_error("{}: expected f32 targets of shape {}, found {}{}", loss, output.desc.shape.str(),
                target.desc.shape.str(), target.desc.dtype == DType::f32 ? "" : " integers");
}

namespace {

// Each function: value(x, t, column) and slope(x, t, column) = d value / dx.
struct SquaredError {
  static constexpr std::string_view kName = "mse";
  double value(double x, double t, size_t) const { return (x - t) * (x - t); }
  double slope(double x, double t, size_t) const { return 2 * (x - t); }
};

struct AbsoluteError {
  static constexpr std::string_view kName = "l1";
  double value(double x, double t, size_t) const { return std::abs(x - t); }
  double slope(double x, double t, size_t) const { return x == t ? 0 : std::copysign(1.0, x - t); }
};

// Quadratic within beta of the target, linear outside.
struct SmoothAbsoluteError {
  static constexpr std::string_view kName = "smooth_l1";
  double beta;
  double value(double x, double t, size_t) const {
    const double z = std::abs(x - t);
    return z < beta ? 0.5 * z * z / beta : z - 0.5 * beta;
  }
  double slope(double x, double t, size_t) const {
    const double z = x - t;
    if (std::abs(z) < beta) return z / beta;
    return z == 0 ? 0 : std::copysign(1.0, z);
  }
};

// -w t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)), w the column's pos_weight, in the form that cannot overflow:
// (1 - t) x + (1 + (w - 1) t) (log1p(exp(-|x|)) + max(-x, 0)).
struct LogisticLoss {
  static constexpr std::string_view kName = "bce_with_logits";
  std::vector<float> pos_weight;
  double factor(double t, size_t column) const {
    return pos_weight.empty() ? 1.0 : 1 + (static_cast<double>(pos_weight[column]) - 1) * t;
  }
  double value(double x, double t, size_t column) const {
    return (1 - t) * x + factor(t, column) * (std::log1p(std::exp(-std::abs(x))) + (x < 0 ? -x : 0.0));
  }
  double slope(double x, double t, size_t column) const { return (1 - t) - factor(t, column) / (1 + std::exp(x)); }
};

template <class Function>
class ElementwiseLoss final : public LossPlan {
 public:
  ElementwiseLoss(Function function, int64_t batch, int64_t classes)
      : function_(std::move(function)), batch_(batch), classes_(classes) {}
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
  int64_t batch_, classes_;
};

}  // namespace

std::unique_ptr<LossPlan> make_cpu_loss(const LossSpec& spec, int64_t batch, int64_t classes) {
  if (batch < 0 || classes < 1) throw_error("loss: cannot compare a batch of {} rows of {} values", batch, classes);
  switch (spec.kind) {
    case LossSpec::Kind::cross_entropy: return make_cpu_cross_entropy(spec, batch, classes);
    case LossSpec::Kind::mse: return std::make_unique<ElementwiseLoss<SquaredError>>(SquaredError{}, batch, classes);
    case LossSpec::Kind::l1: return std::make_unique<ElementwiseLoss<AbsoluteError>>(AbsoluteError{}, batch, classes);
    case LossSpec::Kind::smooth_l1:
      if (!(spec.beta >= 0)) throw_error("smooth_l1: beta must not be negative, found {}", spec.beta);
      return std::make_unique<ElementwiseLoss<SmoothAbsoluteError>>(SmoothAbsoluteError{spec.beta}, batch, classes);
    case LossSpec::Kind::bce_with_logits:
      if (!spec.class_weights.empty() && std::ssize(spec.class_weights) != classes)
        throw_error("bce_with_logits: expected {} positive weights, found {}", classes, spec.class_weights.size());
      return std::make_unique<ElementwiseLoss<LogisticLoss>>(LogisticLoss{spec.class_weights}, batch, classes);
  }
  throw_error("loss: unknown kind {}", static_cast<int>(spec.kind));
}

}  // namespace lockstep

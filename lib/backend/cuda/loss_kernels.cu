// Losses as one reduction over elements or rows, which also writes the gradient.
#include "backend/cuda/loss_kernels.h"

#include <cmath>

#include "backend/cuda/launch.cuh"
#include "backend/loss_functors.h"

namespace lockstep::cuda {
namespace {

struct AddSums {
  static constexpr Sums identity() { return {0, 0, no_bad_row}; }
  static constexpr Sums combine(const Sums& a, const Sums& b) {
    return {a.loss + b.loss, a.weight + b.weight, a.bad_row < b.bad_row ? a.bad_row : b.bad_row};
  }
};

template <class Function>
struct ElementwiseLoss : AddSums {
  Function function;
  Elements e;
  ElementwiseLoss(const Function& f, const Elements& elements) : function(f), e(elements) {}
  constexpr Sums operator()(size_t i) const {
    const double x = e.output[i], t = e.target[i];
    const size_t column = i % e.columns;
    if (e.gradient != nullptr) e.gradient[i] = static_cast<float>(e.scale * function.slope(x, t, column));
    return {function.value(x, t, column), 1, no_bad_row};
  }
};

template <class Function>
void run(cudaStream_t stream, const Function& function, const Elements& elements, Sums* parts) {
  launch_reduction(stream, elements.rows * elements.columns, ElementwiseLoss<Function>(function, elements), parts);
}

// One row: -log p_c = log sum exp d - d_c with d = x - max.
struct CrossEntropy : AddSums {
  Logits l;
  explicit CrossEntropy(const Logits& logits) : l(logits) {}

  constexpr double weight(size_t c) const {
    return l.class_weights == nullptr ? 1.0 : static_cast<double>(l.class_weights[c]);
  }
  constexpr double smooth() const { return l.smoothing / static_cast<double>(l.classes); }

  constexpr Sums operator()(size_t row) const {
    const float* x = l.output + row * l.classes;
    float* gradient = l.gradient == nullptr ? nullptr : l.gradient + row * l.classes;
    const int64_t label = l.labels == nullptr ? 0 : l.labels[row];
    if (l.labels != nullptr && label == l.ignore_index) {
      for (size_t c = 0; gradient != nullptr && c < l.classes; ++c) gradient[c] = 0;
      return {0, 0, no_bad_row};
    }
    if (label < 0 || label >= static_cast<int64_t>(l.classes)) return {0, 0, static_cast<int64_t>(row)};
    float largest = x[0];
    for (size_t c = 1; c < l.classes; ++c) largest = x[c] > largest ? x[c] : largest;
    double sum = 0;
    for (size_t c = 0; c < l.classes; ++c) sum += ::exp(static_cast<double>(x[c] - largest));
    const double log_sum = ::log(sum);
    return l.labels != nullptr ? label_row(x, largest, sum, log_sum, static_cast<size_t>(label), gradient)
                               : probability_row(x, largest, sum, log_sum, l.probabilities + row * l.classes, gradient);
  }

  // (1 - e) w_y (-log p_y) + e / C sum_c w_c (-log p_c); its mean divides both terms by sum w_y.
  constexpr Sums label_row(const float* x, float largest, double sum, double log_sum, size_t y, float* gradient) const {
    const double hit = (1 - l.smoothing) * weight(y);
    double loss = hit * (log_sum - static_cast<double>(x[y] - largest)), weighted = 0;
    for (size_t c = 0; l.smoothing > 0 && c < l.classes; ++c)
      weighted += weight(c) * static_cast<double>(x[c] - largest);
    loss += smooth() * (l.weight_sum * log_sum - weighted);
    const double factor = (hit + smooth() * l.weight_sum) / sum;
    for (size_t c = 0; gradient != nullptr && c < l.classes; ++c) {
      const double e = ::exp(static_cast<double>(x[c] - largest));
      gradient[c] = static_cast<float>(l.scale * (factor * e - smooth() * weight(c) - (c == y ? hit : 0.0)));
    }
    return {loss, weight(y), no_bad_row};
  }

  // sum_c t'_c w_c (-log p_c) with t' = (1 - e) t + e / C; its mean divides by the number of rows.
  constexpr Sums probability_row(const float* x, float largest, double sum, double log_sum, const float* target,
                                 float* gradient) const {
    double loss = 0, total = 0;
    for (size_t c = 0; c < l.classes; ++c) {
      total += wanted(target, c);
      loss += wanted(target, c) * (log_sum - static_cast<double>(x[c] - largest));
    }
    for (size_t c = 0; gradient != nullptr && c < l.classes; ++c) {
      const double e = ::exp(static_cast<double>(x[c] - largest));
      gradient[c] = static_cast<float>(l.scale * (total * e / sum - wanted(target, c)));
    }
    return {loss, 1, no_bad_row};
  }
  constexpr double wanted(const float* target, size_t c) const {
    return ((1 - l.smoothing) * static_cast<double>(target[c]) + smooth()) * weight(c);
  }
};

struct AddToTotal {
  const Sums* sums;
  bool more;
  Sums* total;
  constexpr void operator()(size_t) const { *total = more ? AddSums::combine(*total, *sums) : *sums; }
};

}  // namespace

void elementwise_loss(cudaStream_t stream, const LossSpec& spec, const float* weights, const Elements& elements,
                      Sums* parts) {
  switch (spec.kind) {
    case LossSpec::Kind::mse: return run(stream, SquaredError{}, elements, parts);
    case LossSpec::Kind::l1: return run(stream, AbsoluteError{}, elements, parts);
    case LossSpec::Kind::smooth_l1: return run(stream, SmoothAbsoluteError{spec.beta}, elements, parts);
    case LossSpec::Kind::bce_with_logits: return run(stream, LogisticLoss{weights}, elements, parts);
    case LossSpec::Kind::cross_entropy: break;
  }
  refuse("cross_entropy is no elementwise loss");
}

void cross_entropy(cudaStream_t stream, const Logits& logits, Sums* parts) {
  launch_reduction(stream, logits.rows, CrossEntropy(logits), parts);
}

void add_sums(cudaStream_t stream, const Sums* sums, bool more, Sums* total) {
  launch(stream, 1, AddToTotal{sums, more, total});
}

}  // namespace lockstep::cuda

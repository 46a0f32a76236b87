// Activations, softmax and losses by definition, in double.
#include <cmath>
#include <numbers>

#include "support/oracle.h"

namespace lockstep::oracle {

double activation(Activation kind, double x, double negative_slope) {
  switch (kind) {
    case Activation::none: return x;
    case Activation::relu: return x > 0 ? x : 0;
    case Activation::leaky_relu: return x > 0 ? x : negative_slope * x;
    case Activation::gelu: return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3))));
    case Activation::tanh: return (std::exp(2 * x) - 1) / (std::exp(2 * x) + 1);
    case Activation::sigmoid: return std::exp(x) / (1 + std::exp(x));
  }
  return std::nan("");
}

double activation_derivative(Activation kind, double x, double negative_slope) {
  if (kind == Activation::relu) return x > 0 ? 1 : 0;
  if (kind == Activation::leaky_relu) return x > 0 ? 1 : negative_slope;
  const double h = 1e-5;  // smooth: a five-point difference is right to about 1e-11
  const auto f = [&](double at) { return activation(kind, at, negative_slope); };
  return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h);
}

Values softmax(int64_t outer, int64_t axis, int64_t inner, In x) {
  Values y(x.size()), sum(static_cast<size_t>(outer * inner));
  const auto in = static_cast<size_t>(inner), row = static_cast<size_t>(axis * inner);
  for (size_t i = 0; i < x.size(); ++i) sum[i / row * in + i % in] += std::exp(x[i]);
  for (size_t i = 0; i < x.size(); ++i) y[i] = std::exp(x[i]) / sum[i / row * in + i % in];
  return y;
}

Values softmax_backward(int64_t outer, int64_t axis, int64_t inner, In x, In dy) {
  const Values y = softmax(outer, axis, inner, x);
  Values dx(x.size()), dot(static_cast<size_t>(outer * inner));
  const auto in = static_cast<size_t>(inner), row = static_cast<size_t>(axis * inner);
  for (size_t i = 0; i < x.size(); ++i) dot[i / row * in + i % in] += y[i] * dy[i];
  for (size_t i = 0; i < x.size(); ++i) dx[i] = y[i] * (dy[i] - dot[i / row * in + i % in]);
  return dx;
}

// sum over rows and classes of t[row][c] * (-log p[row][c]), and its gradient; t is any table of weights.
static Loss weighted_negative_log(int64_t rows, int64_t classes, In logits, In t) {
  const Values p = softmax(rows, classes, 1, logits);
  const auto width = static_cast<size_t>(classes);
  Loss loss{.sum = 0, .weight = 0, .gradient = Values(logits.size())};
  Values total(static_cast<size_t>(rows));
  for (size_t i = 0; i < logits.size(); ++i) {
    total[i / width] += t[i];
    if (t[i] != 0) loss.sum -= t[i] * std::log(p[i]);
  }
  for (size_t i = 0; i < logits.size(); ++i) loss.gradient[i] = total[i / width] * p[i] - t[i];
  return loss;
}

Loss cross_entropy(int64_t rows, int64_t classes, In logits, std::span<const int64_t> targets, In class_weights,
                   double smoothing, int64_t ignore_index) {
  Values table(logits.size());
  double weight = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t y = targets[static_cast<size_t>(row)];
    if (y == ignore_index) continue;
    for (int64_t c = 0; c < classes; ++c) {
      const double w = class_weights.empty() ? 1 : class_weights[static_cast<size_t>(c)];
      table[static_cast<size_t>(row * classes + c)] =
          w * (smoothing / static_cast<double>(classes) + (c == y ? 1 - smoothing : 0));
      if (c == y) weight += w;
    }
  }
  Loss loss = weighted_negative_log(rows, classes, logits, table);
  loss.weight = weight;
  return loss;
}

Loss cross_entropy_probabilities(int64_t rows, int64_t classes, In logits, In targets, In class_weights,
                                 double smoothing) {
  Values table(logits.size());
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t c = i % static_cast<size_t>(classes);
    table[i] = (targets[i] * (1 - smoothing) + smoothing / static_cast<double>(classes)) *
               (class_weights.empty() ? 1 : class_weights[c]);
  }
  Loss loss = weighted_negative_log(rows, classes, logits, table);
  loss.weight = static_cast<double>(rows);
  return loss;
}

template <class Value, class Slope>
static Loss elementwise(In x, In target, const Value& value, const Slope& slope) {
  Loss loss{.sum = 0, .weight = static_cast<double>(x.size()), .gradient = {}};
  for (size_t i = 0; i < x.size(); ++i) {
    loss.sum += value(x[i] - target[i]);
    loss.gradient.push_back(slope(x[i] - target[i]));
  }
  return loss;
}

static double sign(double z) { return z > 0 ? 1 : z < 0 ? -1 : 0; }

Loss mse(In x, In target) {
  return elementwise(
      x, target, [](double z) { return z * z; }, [](double z) { return 2 * z; });
}
Loss l1(In x, In target) {
  return elementwise(
      x, target, [](double z) { return std::abs(z); }, sign);
}
Loss smooth_l1(In x, In target, double beta) {
  return elementwise(
      x, target, [=](double z) { return std::abs(z) < beta ? z * z / (2 * beta) : std::abs(z) - beta / 2; },
      [=](double z) { return std::abs(z) < beta ? z / beta : sign(z); });
}

Loss bce_with_logits(In x, In target, In pos_weight) {
  Loss loss{.sum = 0, .weight = static_cast<double>(x.size()), .gradient = {}};
  for (size_t i = 0; i < x.size(); ++i) {
    const double w = pos_weight.empty() ? 1 : pos_weight[i % pos_weight.size()], t = target[i];
    const double p = 1 / (1 + std::exp(-x[i])), q = 1 / (1 + std::exp(x[i]));
    loss.sum += -w * t * std::log(p) - (1 - t) * std::log(q);
    loss.gradient.push_back(-w * t * q + (1 - t) * p);
  }
  return loss;
}

}  // namespace lockstep::oracle

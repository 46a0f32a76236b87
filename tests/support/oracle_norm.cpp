// Normalisations by definition. All three are one operation: elements fall into groups that share statistics, and into
// channels that share a weight and a bias.
#include <cmath>
#include <functional>

#include "support/oracle.h"

namespace lockstep::oracle {
namespace {

using Index = std::function<size_t(size_t)>;
struct Partition {
  size_t groups, weights;
  Index group, weight;  // of element i
};

BatchStatistics statistics(const Partition& p, In x) {
  BatchStatistics s{Values(p.groups), Values(p.groups)};
  const double count = static_cast<double>(x.size()) / static_cast<double>(p.groups);
  for (size_t i = 0; i < x.size(); ++i) s.mean[p.group(i)] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) s.variance[p.group(i)] += std::pow(x[i] - s.mean[p.group(i)], 2) / count;
  return s;
}

Values normalise(const Partition& p, double eps, In x, In weight, In bias) {
  const BatchStatistics s = statistics(p, x);
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t g = p.group(i), w = p.weight(i);
    y[i] = (x[i] - s.mean[g]) / std::sqrt(s.variance[g] + eps) * (weight.empty() ? 1 : weight[w]) +
           (bias.empty() ? 0 : bias[w]);
  }
  return y;
}

Gradients normalise_backward(const Partition& p, double eps, In x, In weight, In dy) {
  const BatchStatistics s = statistics(p, x);
  const double count = static_cast<double>(x.size()) / static_cast<double>(p.groups);
  Gradients grad{Values(x.size()), Values(p.weights), Values(p.weights)};
  Values normal(x.size()), weighted(x.size()), mean(p.groups), mean_normal(p.groups);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t g = p.group(i), w = p.weight(i);
    normal[i] = (x[i] - s.mean[g]) / std::sqrt(s.variance[g] + eps);
    weighted[i] = dy[i] * (weight.empty() ? 1 : weight[w]);
    grad.dweight[w] += dy[i] * normal[i];
    grad.dbias[w] += dy[i];
    mean[g] += weighted[i] / count;
    mean_normal[g] += weighted[i] * normal[i] / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t g = p.group(i);
    grad.dx[i] = (weighted[i] - mean[g] - normal[i] * mean_normal[g]) / std::sqrt(s.variance[g] + eps);
  }
  return grad;
}

Partition by_channel(int64_t channels, int64_t inner) {
  const auto c = static_cast<size_t>(channels), in = static_cast<size_t>(inner);
  const Index channel = [=](size_t i) { return i / in % c; };
  return {c, c, channel, channel};
}

Partition by_row(int64_t outer, int64_t inner) {
  const auto in = static_cast<size_t>(inner);
  return {static_cast<size_t>(outer), in, [=](size_t i) { return i / in; }, [=](size_t i) { return i % in; }};
}

Partition by_group(int64_t batch, int64_t channels, int64_t inner, int64_t groups) {
  const auto c = static_cast<size_t>(channels), in = static_cast<size_t>(inner);
  const size_t row = c * in / static_cast<size_t>(groups);
  return {static_cast<size_t>(batch * groups), c, [=](size_t i) { return i / row; },
          [=](size_t i) { return i / in % c; }};
}

}  // namespace

BatchStatistics batch_statistics(int64_t, int64_t channels, int64_t inner, In x) {
  return statistics(by_channel(channels, inner), x);
}
Values batch_norm(int64_t, int64_t channels, int64_t inner, double eps, In x, In weight, In bias) {
  return normalise(by_channel(channels, inner), eps, x, weight, bias);
}
Gradients batch_norm_backward(int64_t, int64_t channels, int64_t inner, double eps, In x, In weight, In dy) {
  return normalise_backward(by_channel(channels, inner), eps, x, weight, dy);
}
Values layer_norm(int64_t outer, int64_t inner, double eps, In x, In weight, In bias) {
  return normalise(by_row(outer, inner), eps, x, weight, bias);
}
Gradients layer_norm_backward(int64_t outer, int64_t inner, double eps, In x, In weight, In dy) {
  return normalise_backward(by_row(outer, inner), eps, x, weight, dy);
}
Values group_norm(int64_t batch, int64_t channels, int64_t inner, int64_t groups, double eps, In x, In weight,
                  In bias) {
  return normalise(by_group(batch, channels, inner, groups), eps, x, weight, bias);
}
Gradients group_norm_backward(int64_t batch, int64_t channels, int64_t inner, int64_t groups, double eps, In x,
                              In weight, In dy) {
  return normalise_backward(by_group(batch, channels, inner, groups), eps, x, weight, dy);
}

}  // namespace lockstep::oracle

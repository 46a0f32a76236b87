// Reference operations as plain loops in double, straight from their definitions: what every kernel is compared with.
// All tensors are row-major in PyTorch's canonical layout; backward functions return the gradients of sum(y * dy).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/specs.h"

namespace lockstep::oracle {

using Values = std::vector<double>;
using In = std::span<const double>;

Values widen(std::span<const float> x);
std::vector<float> narrow(In x);
// Reproducible numbers in [low, high), exactly representable as float.
std::vector<float> random_floats(size_t count, uint32_t seed, float low = -1, float high = 1);

// Gradients of an operation with weights; empty vectors where there is none.
struct Gradients {
  Values dx, dweight, dbias;
};

struct Conv2dGeometry {
  int64_t batch = 1, channels = 1, height = 1, width = 1, out_channels = 1;
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
  int64_t out_height() const { return (height + 2 * padding[0] - dilation[0] * (kernel[0] - 1) - 1) / stride[0] + 1; }
  int64_t out_width() const { return (width + 2 * padding[1] - dilation[1] * (kernel[1] - 1) - 1) / stride[1] + 1; }
};
// x [N, C, H, W], w [out][in/groups][kh][kw], b [out] or empty.
Values conv2d(const Conv2dGeometry& g, In x, In w, In b);
Gradients conv2d_backward(const Conv2dGeometry& g, In x, In w, In dy);

// x [rows, in], w [out][in], b [out] or empty.
Values linear(int64_t rows, int64_t in, int64_t out, In x, In w, In b);
Gradients linear_backward(int64_t rows, int64_t in, int64_t out, In x, In w, In dy);

// PyTorch's output size of one pooled axis: the last window of ceil_mode must start inside the input or its left
// padding.
int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode);
// Only the spec's shape fields are read; its input is taken as canonical.
std::array<int64_t, 2> pooled_shape(const Pool2dSpec& spec);
Values pool2d(const Pool2dSpec& spec, In x);
Values pool2d_backward(const Pool2dSpec& spec, In x, In dy);

// x viewed as [batch, channels, inner]: statistics over batch and inner. weight, bias: per channel, or empty.
struct BatchStatistics {
  Values mean, variance;  // biased
};
BatchStatistics batch_statistics(int64_t batch, int64_t channels, int64_t inner, In x);
Values batch_norm(int64_t batch, int64_t channels, int64_t inner, double eps, In x, In weight, In bias);
Gradients batch_norm_backward(int64_t batch, int64_t channels, int64_t inner, double eps, In x, In weight, In dy);
// rows of `inner` elements; weight, bias: per element of a row.
Values layer_norm(int64_t outer, int64_t inner, double eps, In x, In weight, In bias);
Gradients layer_norm_backward(int64_t outer, int64_t inner, double eps, In x, In weight, In dy);
Values group_norm(int64_t batch, int64_t channels, int64_t inner, int64_t groups, double eps, In x, In weight, In bias);
Gradients group_norm_backward(int64_t batch, int64_t channels, int64_t inner, int64_t groups, double eps, In x,
                              In weight, In dy);

// One element of an activation, and its derivative.
double activation(Activation kind, double x, double negative_slope = 0.01);
double activation_derivative(Activation kind, double x, double negative_slope = 0.01);
// Over the middle axis of [outer, axis, inner].
Values softmax(int64_t outer, int64_t axis, int64_t inner, In x);
Values softmax_backward(int64_t outer, int64_t axis, int64_t inner, In x, In dy);

// Sums over samples, and the denominator of PyTorch's mean.
struct Loss {
  double sum = 0, weight = 0;
  Values gradient;  // of the sum
};
// class_weights: empty, or one per class.
Loss cross_entropy(int64_t rows, int64_t classes, In logits, std::span<const int64_t> targets, In class_weights,
                   double smoothing, int64_t ignore_index);
Loss cross_entropy_probabilities(int64_t rows, int64_t classes, In logits, In targets, In class_weights,
                                 double smoothing);
Loss mse(In x, In target);
Loss l1(In x, In target);
Loss smooth_l1(In x, In target, double beta);
// pos_weight: empty, or one per output (the last axis).
Loss bce_with_logits(In x, In target, In pos_weight);

}  // namespace lockstep::oracle

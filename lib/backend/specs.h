// Plain descriptions of operations: what a layer asks the backend to plan. Shapes are for one bound batch size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "backend/statistics_reducer.h"
#include "backend/weight_format.h"
#include "core/tensor.h"

namespace lockstep {

enum class Phase { training, inference };
enum class Activation { none, relu, leaky_relu, gelu, gelu_tanh, tanh, sigmoid };

// What every spec says: the bound input and whether a backward pass will follow.
struct Conv2dSpec {
  TensorDesc input;  // [N, C, H, W]
  int64_t out_channels = 0;
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
  bool bias = true;
  Activation activation = Activation::none;  // none or relu, applied to the output (fused)
  bool input_gradient = true;                // false for the first layer: backward_data is never called
  bool weight_gradient = true;               // false where the weight is frozen: backward_weights gets dw = null
  Phase phase = Phase::training;
  bool stored = false;  // true: weight_format below is fixed (the parameters exist already)
  WeightFormatPtr weight_format;
};

struct LinearSpec {
  TensorDesc input;  // [N, K], or [N, C, H, W] flattened by the layer before (K = C*H*W, canonical order C, H, W)
  int64_t out_features = 0;
  bool bias = true;
  Activation activation = Activation::none;  // none or relu
  bool input_gradient = true;
  bool weight_gradient = true;
  bool bias_gradient = true;  // false where the bias is frozen: backward_weights gets db = null
  // Two of these layers with a ReLU between them that only the second reads (plans.h, LinearPair).
  bool keeps_mask = false;           // this is the first: it is to keep the mask of its ReLU
  bool masks_input = false;          // this is the second: it masks the gradient of its input
  bool input_bias_gradient = false;  // and makes the first one's bias gradient
  Phase phase = Phase::training;
  bool stored = false;
  WeightFormatPtr weight_format;
};

struct Pool2dSpec {
  enum class Kind { max, average, average_exclude_padding };
  TensorDesc input;  // [N, C, H, W], any channel block
  Kind kind = Kind::max;
  std::array<int64_t, 2> kernel{2, 2}, stride{2, 2}, padding{0, 0};
  std::array<int64_t, 2> dilation{1, 1};  // distance of the window's pixels; of a maximum only
  bool ceil_mode = false;
  bool adaptive = false;  // adaptive: output is out_size, what says more of windows is ignored (max or average)
  std::array<int64_t, 2> out_size{1, 1};
  bool mask_relu = false;  // the input is a ReLU's output: backward also applies that ReLU's gradient mask
  Phase phase = Phase::training;
};

struct BatchNormSpec {
  TensorDesc input;  // [N, C] or [N, C, H, W], any channel block
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // empty: cumulative average
  bool affine = true;
  Phase phase = Phase::training;
  StatisticsReducer* across_ranks = nullptr;  // training: statistics of all ranks' samples; null: of the input alone
};

struct LayerNormSpec {  // normalises the trailing `inner` elements of each of `outer` rows
  int64_t outer = 0, inner = 0;
  double eps = 1e-5;
  bool affine = true;
};

struct GroupNormSpec {
  TensorDesc input;  // [N, C, ...], channel_block 1
  int64_t groups = 1;
  double eps = 1e-5;
  bool affine = true;
};

struct ActivationSpec {
  int64_t count = 0;         // elements
  DType dtype = DType::f32;  // other types: relu only
  Activation kind = Activation::relu;
  double negative_slope = 0.01;
};

struct SoftmaxSpec {  // over the middle axis of [outer, axis, inner]
  int64_t outer = 0, axis = 0, inner = 1;
};

struct DropoutSpec {
  int64_t count = 0;
  DType dtype = DType::f32;
  double p = 0.5;  // probability of zero
};

}  // namespace lockstep

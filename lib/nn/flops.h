// Floating-point operations of a layer, for one sample. A multiplication and an addition count one each, and so does
// any other function of a number (exp, tanh, a comparison). With n the elements of the output:
//
//   linear                    2 in out                                           + out with a bias
//   conv2d                    2 (channels / groups) kernel_h kernel_w n          + n with a bias
//   max_pool2d, avg_pool2d    kernel_h kernel_w n
//   adaptive pooling          elements of the input (windows that overlap are not counted twice)
//   batch_norm                2 n (its statistics are constants in inference)
//   layer_norm, group_norm    5 n (mean, deviation, square, sum, scale)          + 2 n if affine
//   softmax                   4 n (maximum, exp, sum, division)
//   relu, leaky_relu, gelu, tanh, sigmoid, add    n
//   flatten, dropout          0 (dropout is the identity in inference)
//
// A training step is the forward pass, for every layer with parameters that train as much again for their gradient,
// and as much again for the gradient of its input where something trains upstream. Where everything trains, that is the
// usual three times the forward pass, less the first layer's input gradient. Loss, optimizer and reductions are not in
// it.
#pragma once

#include <cstdint>

#include "core/shape.h"
#include "nn/model_spec.h"

namespace lockstep {

// input, output: shapes of one sample (of `add` the first input's). Error: an unknown kind.
int64_t forward_flops(const LayerSpec& layer, const Shape& input, const Shape& output);

}  // namespace lockstep

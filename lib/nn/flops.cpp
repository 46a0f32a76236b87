#include "nn/flops.h"

#include "core/error.h"

namespace lockstep {

int64_t forward_flops(const LayerSpec& layer, const Shape& input, const Shape& output) {
  const std::string& kind = layer.kind;
  const int64_t n = output.numel();
  const int64_t window = layer.kernel[0] * layer.kernel[1];
  const int64_t bias = layer.bias ? n : 0;
  if (kind == "linear") return 2 * input.numel() * n + bias;
  if (kind == "conv2d") return 2 * (input[0] / layer.groups) * window * n + bias;
  if (kind == "max_pool2d" || kind == "avg_pool2d") return window * n;
  if (kind == "adaptive_avg_pool2d" || kind == "adaptive_max_pool2d") return input.numel();
  if (kind == "batch_norm") return 2 * n;
  if (kind == "layer_norm" || kind == "group_norm") return (layer.affine ? 7 : 5) * n;
  if (kind == "softmax") return 4 * n;
  if (kind == "flatten" || kind == "dropout") return 0;
  for (const char* elementwise : {"relu", "leaky_relu", "gelu", "tanh", "sigmoid", "add"}) {
    if (kind == elementwise) return n;
  }
  throw_error("layer kind '{}': its operations are not counted", kind);
}

}  // namespace lockstep

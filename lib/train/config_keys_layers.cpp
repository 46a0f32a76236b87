// The keys of each layer kind.
#include <algorithm>
#include <memory>

#include "train/config_layers.h"

namespace lockstep {
namespace {

using L = LayerSpec;

Key pair_key(std::string name, std::array<int64_t, 2> L::*member, double low, std::string doc) {
  return key(std::move(name), member, between(low, 1 << 20), std::move(doc));
}

Key out_key(std::string doc) {
  return key("out", &L::out, between(1, 1 << 30), std::move(doc))
      .must()
      .also({"out_features", "out_channels", "features", "channels", "units", "width"});
}
Key kernel_key() { return pair_key("kernel", &L::kernel, 1, "Window.").also({"kernel_size", "size"}); }
Key stride_key() { return pair_key("stride", &L::stride, 1, "Step of the window.").also({"strides"}); }
Key padding_key(std::string doc) { return pair_key("padding", &L::padding, 0, std::move(doc)).also({"pad"}); }
Key dilation_key() { return pair_key("dilation", &L::dilation, 1, "Distance of the window's taps."); }
Key bias_key() { return key("bias", &L::bias, anything(), "Adds a learned bias.").also({"use_bias"}); }
Key eps_key() { return key("eps", &L::eps, above(0), "Added to the variance.").also({"epsilon"}); }
Key affine_key() { return key("affine", &L::affine, anything(), "Learned scale and shift."); }
Key ceil_key() { return key("ceil_mode", &L::ceil_mode, anything(), "Rounds the output size up."); }

LayerKind kind(std::string name, std::string main_key, std::string doc, std::vector<Key> keys) {
  Schema schema;
  schema.doc = std::move(doc);
  schema.scalar_key = std::move(main_key);
  schema.defaults = std::make_shared<L>();
  schema.keys = std::move(keys);
  return {std::move(name), std::move(schema)};
}

// The stride of a pooling window is its kernel unless given.
LayerKind pooling(std::string name, std::string doc, std::vector<Key> keys) {
  LayerKind result = kind(std::move(name), "kernel", std::move(doc), std::move(keys));
  result.schema.finish = [](void* object, const MapView& view) {
    auto* layer = static_cast<L*>(object);
    if (!view.has("stride")) layer->stride = layer->kernel;
  };
  return result;
}

std::vector<LayerKind> make_table() {
  std::vector<LayerKind> table;
  table.push_back(kind("linear", "out", "y = x W^T + b.", {out_key("Output features."), bias_key()}));
  table.push_back(kind(
      "conv2d", "out", "Two-dimensional cross-correlation, as torch.nn.Conv2d.",
      {out_key("Output channels."), kernel_key(), stride_key(), padding_key("Zeros around the image."), dilation_key(),
       key("groups", &L::groups, between(1, 1 << 20), "Groups of channels that don't mix."), bias_key()}));
  table.push_back(kind("relu", "", "max(x, 0).", {}));
  table.push_back(
      kind("leaky_relu", "negative_slope", "x, or negative_slope x where x < 0.",
           {key("negative_slope", &L::negative_slope, anything(), "Slope below 0.").also({"slope", "alpha"})}));
  table.push_back(
      kind("gelu", "", "x times the normal distribution function of x.",
           {key("tanh_approximation", &L::tanh_approximation, anything(), "The approximation with tanh instead of erf.")
                .also({"approximate"})}));
  table.push_back(kind("tanh", "", "Hyperbolic tangent.", {}));
  table.push_back(kind("sigmoid", "", "1 / (1 + exp(-x)).", {}));
  table.push_back(pooling("max_pool2d", "Largest value of the window.",
                          {kernel_key().must(), stride_key().by_default("kernel"),
                           padding_key("Border that is never the largest."), dilation_key(), ceil_key()}));
  table.push_back(pooling(
      "avg_pool2d", "Mean of the window.",
      {kernel_key().must(), stride_key().by_default("kernel"), padding_key("Zeros around the image."), ceil_key(),
       key("count_include_pad", &L::count_include_pad, anything(), "Counts the padding in the divisor.")}));
  const auto output_size = [] {
    return pair_key("output_size", &L::output_size, 1, "Size of the result.").must().also({"size", "output"});
  };
  table.push_back(
      kind("adaptive_avg_pool2d", "output_size", "Means, with windows that give the wanted size.", {output_size()}));
  table.push_back(
      kind("adaptive_max_pool2d", "output_size", "Maxima, with windows that give the wanted size.", {output_size()}));
  table.push_back(kind("flatten", "", "All axes of a sample in one.", {}));
  table.push_back(
      kind("dropout", "p", "Zeroes values at random in training and scales the rest by 1 / (1 - p).",
           {key("p", &L::p, between(0, 1), "Probability of zero.").also({"rate", "prob", "probability"}),
            key("torch_stream", &L::torch_stream, anything(),
                "Draws the mask as PyTorch's CPU generator does (one rank), instead of from (seed, step, layer).")}));
  table.push_back(kind("batch_norm", "", "Normalises each channel over the batch (1d and 2d).",
                       {eps_key(),
                        nullable_key("momentum", &L::momentum, between(0, 1),
                                     "Weight of the new batch in the running statistics; null: cumulative average."),
                        affine_key()}));
  table.push_back(kind("layer_norm", "shape", "Normalises each sample over its last axes.",
                       {key("shape", &L::normalized_shape, between(1, 1 << 30).items(0, 5),
                            "The normalised axes; empty: all axes of a sample.")
                            .also({"normalized_shape"}),
                        eps_key(), affine_key()}));
  table.push_back(kind("group_norm", "groups", "Normalises each group of channels of a sample.",
                       {key("groups", &L::groups, between(1, 1 << 20), "Number of groups.").must().also({"num_groups"}),
                        eps_key(), affine_key()}));
  table.push_back(
      kind("add", "layer", "Sum of the entry's input and another layer's output (residual).",
           {key("layer", &L::add, anything(), "Name of the other layer, or input for the network's input.").must()}));
  table.push_back(kind("softmax", "", "exp(x) / sum exp(x) over axis 1.", {}));
  return table;
}

}  // namespace

const std::vector<LayerKind>& layer_kinds_table() {
  static const std::vector<LayerKind> table = make_table();
  return table;
}

const LayerKind* find_layer_kind(std::string_view name) {
  const auto& table = layer_kinds_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const LayerKind& kind) { return kind.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace lockstep

// The layer kinds of a config, one factory each; nn/builder holds the table kind -> factory. A layer copies what it
// needs of the spec. Wrong values are Errors that begin with the spec's place in the file.
#pragma once

#include <cstdint>
#include <string>

#include "nn/layer.h"
#include "nn/model_spec.h"

namespace lockstep {

LayerPtr make_linear(const LayerSpec& spec);
LayerPtr make_conv2d(const LayerSpec& spec);

LayerPtr make_relu(const LayerSpec& spec);
LayerPtr make_leaky_relu(const LayerSpec& spec);
LayerPtr make_gelu(const LayerSpec& spec);
LayerPtr make_tanh(const LayerSpec& spec);
LayerPtr make_sigmoid(const LayerSpec& spec);
LayerPtr make_softmax(const LayerSpec& spec);  // over axis 1: the classes of [N, C], the channels of [N, C, ...]

LayerPtr make_max_pool2d(const LayerSpec& spec);
LayerPtr make_avg_pool2d(const LayerSpec& spec);
LayerPtr make_adaptive_avg_pool2d(const LayerSpec& spec);
LayerPtr make_adaptive_max_pool2d(const LayerSpec& spec);

LayerPtr make_batch_norm(const LayerSpec& spec);
LayerPtr make_layer_norm(const LayerSpec& spec);
LayerPtr make_group_norm(const LayerSpec& spec);

LayerPtr make_flatten(const LayerSpec& spec);
LayerPtr make_add(const LayerSpec& spec);  // two inputs
// layer_id: the layer's place in the network; with StepStream.key it gives the layer's own stream of masks.
LayerPtr make_dropout(const LayerSpec& spec, uint64_t layer_id);

// "file:line:column: max_pool2d 'pool1'", how every message about a layer begins.
std::string describe(const LayerSpec& spec);

}  // namespace lockstep

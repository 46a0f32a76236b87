// From the layer list of a config to layer objects, names and connections.
#pragma once

#include <string>
#include <vector>

#include "nn/layer.h"
#include "nn/model_spec.h"

namespace lockstep {

constexpr int kNetworkInput = -1;

struct BuiltNode {
  std::string name;  // the layer's name, or its index in the list
  LayerPtr layer;
  std::vector<int> inputs;  // indices of earlier nodes or kNetworkInput
  Shape sample_shape;       // output of one sample
};

// Makes the layers, resolves references, infers shapes. Throws Error with the entry's position in the file.
std::vector<BuiltNode> build_layers(const ModelSpec& spec, const Shape& sample);
std::vector<std::string> layer_kinds();

}  // namespace lockstep

// What a layer becomes in ONNX: the operators of its inference form.
#pragma once

#include <string>
#include <vector>

#include "nn/model_spec.h"
#include "train/checkpoint/tensor_file.h"
#include "train/export/onnx_graph.h"

namespace lockstep {

struct OnnxLayer {
  const LayerSpec& spec;
  std::string name;                 // the layer's own, or its index
  std::vector<std::string> inputs;  // values of the graph
  Shape input, output;              // of one sample; of the first input
  const TensorFile& weights;        // under PyTorch's names
};

// Adds it; returns the name of its result. Error: a parameter is missing from the weights, or has another shape.
std::string add_layer(OnnxGraph& graph, const OnnxLayer& layer);

// onnx_pool.cpp.
std::string add_pool(OnnxGraph& graph, const OnnxLayer& layer);
std::string add_adaptive_pool(OnnxGraph& graph, const OnnxLayer& layer);

}  // namespace lockstep

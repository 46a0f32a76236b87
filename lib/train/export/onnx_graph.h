// An ONNX model under construction: nodes and constants by name, over the messages that the ONNX project makes from its
// onnx.proto. What a layer becomes is onnx_layers.h's matter.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/shape.h"

namespace lockstep {

inline constexpr int kOnnxOpset = 17;  // LayerNormalization came with it
inline constexpr int kOnnxIrVersion = 8;

// A node that was just added, to give it attributes.
class OnnxNode {
 public:
  explicit OnnxNode(onnx::NodeProto& node) : node_(node) {}
  OnnxNode& set(const char* name, int64_t value);
  OnnxNode& set(const char* name, double value);  // ONNX knows floats only
  OnnxNode& set(const char* name, std::span<const int64_t> values);
  const std::string& output() const { return node_.output(0); }

 private:
  onnx::AttributeProto& add(const char* name);
  onnx::NodeProto& node_;
};

class OnnxGraph {
 public:
  static constexpr const char* kInput = "input";
  static constexpr const char* kOutput = "output";
  static constexpr const char* kBatch = "batch";  // the dynamic dimension

  explicit OnnxGraph(const Shape& sample);

  // output: a name for the node's result, made unique.
  OnnxNode node(const char* op, const std::vector<std::string>& inputs, const std::string& output);
  std::string constant(const std::string& name, std::span<const int64_t> shape, std::span<const float> values);
  std::string constant(const std::string& name, std::span<const int64_t> values);  // one axis
  std::string scalar(const std::string& name, float value);

  // Makes `value` the model's output and adds facts about it. Then the graph is complete.
  void finish(const std::string& value, const Shape& output_sample,
              const std::vector<std::pair<std::string, std::string>>& facts);
  // The file's bytes. Error: more than the 2 GiB that one may have.
  std::string bytes() const;

 private:
  std::string unique(const std::string& name);
  void describe(onnx::ValueInfoProto& value, const char* name, const Shape& sample) const;
  onnx::ModelProto model_;
  std::set<std::string> names_;
};

}  // namespace lockstep

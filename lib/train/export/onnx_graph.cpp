#include "train/export/onnx_graph.h"

#include <bit>
#include <limits>

#include "core/build_info.h"
#include "core/error.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "raw tensor data are little-endian");

onnx::AttributeProto& OnnxNode::add(const char* name) {
  onnx::AttributeProto& attribute = *node_.add_attribute();
  attribute.set_name(name);
  return attribute;
}

OnnxNode& OnnxNode::set(const char* name, int64_t value) {
  onnx::AttributeProto& attribute = add(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  return *this;
}

OnnxNode& OnnxNode::set(const char* name, double value) {
  onnx::AttributeProto& attribute = add(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(value));
  return *this;
}

OnnxNode& OnnxNode::set(const char* name, std::span<const int64_t> values) {
  onnx::AttributeProto& attribute = add(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
  return *this;
}

OnnxGraph::OnnxGraph(const Shape& sample) {
  model_.set_ir_version(kOnnxIrVersion);
  model_.set_producer_name("lockstep");
  model_.set_producer_version(build_info());
  onnx::OperatorSetIdProto& opset = *model_.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOnnxOpset);
  model_.mutable_graph()->set_name("lockstep");
  names_ = {kInput, kOutput};
  describe(*model_.mutable_graph()->add_input(), kInput, sample);
}

std::string OnnxGraph::unique(const std::string& name) {
  std::string made = name;
  for (int copy = 2; !names_.insert(made).second; ++copy) made = fmt::format("{}_{}", name, copy);
  return made;
}

OnnxNode OnnxGraph::node(const char* op, const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(unique(output));
  node.set_name(node.output(0));
  return OnnxNode(node);
}

std::string OnnxGraph::constant(const std::string& name, std::span<const int64_t> shape,
                                std::span<const float> values) {
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(unique(name));
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : shape) tensor.add_dims(dim);
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string OnnxGraph::constant(const std::string& name, std::span<const int64_t> values) {
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(unique(name));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string OnnxGraph::scalar(const std::string& name, float value) { return constant(name, {}, {&value, 1}); }

void OnnxGraph::describe(onnx::ValueInfoProto& value, const char* name, const Shape& sample) const {
  value.set_name(name);
  onnx::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param(kBatch);
  for (const int64_t dim : sample.dims()) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

void OnnxGraph::finish(const std::string& value, const Shape& output_sample,
                       const std::vector<std::pair<std::string, std::string>>& facts) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type("Identity");
  node.set_name(kOutput);
  node.add_input(value);
  node.add_output(kOutput);
  describe(*model_.mutable_graph()->add_output(), kOutput, output_sample);
  for (const auto& [key, text] : facts) {
    onnx::StringStringEntryProto& entry = *model_.add_metadata_props();
    entry.set_key(key);
    entry.set_value(text);
  }
}

std::string OnnxGraph::bytes() const {
  if (model_.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw_error("an ONNX file of {} bytes: 2 GiB are the limit of the format; export --safetensors has none",
                model_.ByteSizeLong());
  std::string bytes;
  if (!model_.SerializeToString(&bytes)) throw_error("the ONNX model cannot be serialised");
  return bytes;
}

}  // namespace lockstep

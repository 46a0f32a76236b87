#include "support/layer_harness.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace lockstep::test {

static float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

// NaN everywhere: whatever a layer reads before it wrote it, or forgets to write, shows.
static void spoil(const Memory& memory, const Buffer& buffer) {
  const std::vector<float> nothing(buffer.as<float>().size(), std::numeric_limits<float>::quiet_NaN());
  memory.upload(buffer.as<float>(), nothing);
}

static size_t index_of(const std::vector<ParameterSpec>& specs, const std::string& name) {
  const auto found = std::ranges::find(specs, name, &ParameterSpec::name);
  if (found == specs.end()) throw_error("the layer has no '{}'", name);
  return static_cast<size_t>(found - specs.begin());
}

LayerHarness::LayerHarness(Backend& backend, LayerPtr layer, std::span<const Shape> inputs, const Options& options)
    : backend_(backend), layer_(std::move(layer)), options_(options) {
  std::vector<Shape> samples;
  for (const Shape& shape : inputs) {
    samples.push_back(shape.without_front());
    const int64_t block = shape.rank() == 4 ? options.channel_block : 1;
    input_descs_.push_back({.shape = shape, .channel_block = block});
    if (block > 1 && !layer_->accepts_blocked()) throw_error("{} does not accept blocked inputs", layer_->kind());
  }
  const Shape sample = layer_->infer(samples);
  if (options.fuse_relu && !layer_->fuse_relu()) throw_error("{} declines the ReLU", layer_->kind());
  if (options.fuse_input_relu_mask && !layer_->fuse_input_relu_mask())
    throw_error("{} declines the ReLU's mask", layer_->kind());
  parameter_specs_ = layer_->parameters();
  buffer_specs_ = layer_->buffers();
  formats_.resize(parameter_specs_.size());
  BindContext context{backend, options.phase, options.input_gradient, input_descs_, false, formats_};
  binding_ = layer_->bind(context);
  output_ = binding_.output;
  if (output_.shape.numel() != sample.with_front(inputs[0][0]).numel())
    throw_error("{}: bound to {}, inferred {}", layer_->kind(), output_.shape.str(), sample.str());
  if (options.in_place && !binding_.in_place) throw_error("{} does not run in place", layer_->kind());

  for (const TensorDesc& desc : input_descs_) {
    inputs_.push_back(backend.allocate(desc.bytes()));
    input_gradients_.push_back(backend.allocate(desc.bytes()));
    x_.push_back(floats(inputs_.back()));
    dx_.push_back(options.input_gradient ? floats(input_gradients_.back()) : nullptr);
  }
  for (size_t i = 0; i < parameter_specs_.size(); ++i) {
    const size_t count =
        formats_[i] ? formats_[i]->stored_count() : static_cast<size_t>(parameter_specs_[i].shape.numel());
    parameters_.push_back(backend.allocate(count * sizeof(float)));
    gradients_.push_back(backend.allocate(count * sizeof(float)));
    parameter_data_.push_back(floats(parameters_.back()));
    gradient_data_.push_back(floats(gradients_.back()));
  }
  for (const ParameterSpec& spec : buffer_specs_) {
    buffers_.push_back(backend.allocate(static_cast<size_t>(spec.shape.numel()) * sizeof(float)));
    buffer_data_.push_back(floats(buffers_.back()));
  }
  output_data_ = backend.allocate(output_.bytes());
  output_gradient_ = backend.allocate(output_.bytes());
  workspace_ = backend.allocate(binding_.workspace_bytes);
  saved_ = backend.allocate(binding_.saved_bytes);
  for (const Buffer& gradient : gradients_) spoil(memory(), gradient);
  spoil(memory(), workspace_);
  spoil(memory(), saved_);
}

LayerHarness::LayerHarness(Backend& backend, LayerPtr layer, const Shape& input, const Options& options)
    : LayerHarness(backend, std::move(layer), std::span<const Shape>(&input, 1), options) {}

LayerHarness::LayerHarness(Backend& backend, LayerPtr layer, const Shape& input)
    : LayerHarness(backend, std::move(layer), input, Options{}) {}

void LayerHarness::initialize(Generator& generator) {
  std::vector<std::vector<float>> values, statistics;
  for (const ParameterSpec& spec : parameter_specs_) values.emplace_back(static_cast<size_t>(spec.shape.numel()));
  for (const Buffer& buffer : buffers_) statistics.push_back(memory().downloaded(buffer.as<float>()));
  const std::vector<std::span<float>> parameter_spans(values.begin(), values.end());
  const std::vector<std::span<float>> buffer_spans(statistics.begin(), statistics.end());
  layer_->initialize(generator, parameter_spans, buffer_spans);
  for (size_t i = 0; i < values.size(); ++i) set_parameter(parameter_specs_[i].name, values[i]);
  for (size_t i = 0; i < statistics.size(); ++i) set_buffer(buffer_specs_[i].name, statistics[i]);
}

void LayerHarness::set_parameter(const std::string& name, std::span<const float> canonical) {
  const size_t i = index_of(parameter_specs_, name);
  std::vector<float> stored(canonical.begin(), canonical.end());
  stored.resize(parameters_[i].as<float>().size());
  if (formats_[i]) formats_[i]->store(canonical, stored);
  memory().upload(parameters_[i].as<float>(), stored);
}

void LayerHarness::set_buffer(const std::string& name, std::span<const float> values) {
  memory().upload(buffers_[index_of(buffer_specs_, name)].as<float>().first(values.size()), values);
}

Io LayerHarness::io() {
  Io io;
  io.x = x_;
  io.y = options_.in_place ? const_cast<void*>(x_[0]) : output_data_.data();
  io.parameters = parameter_data_;
  io.gradients = gradient_data_;
  io.buffers = buffer_data_;
  io.workspace = workspace_.data();
  io.saved = saved_.data();
  io.stream = &stream_;
  return io;
}

// The blocked memory of `desc` in canonical order, and back. A 2-D output may carry a blocked 4-D description.
static TensorDesc plain(const TensorDesc& desc) { return {.shape = desc.shape, .channel_block = 1}; }

void LayerHarness::put(const std::vector<float>& canonical, const TensorDesc& desc, void* to) {
  const Buffer staging = backend_.allocate(canonical.size() * sizeof(float));
  memory().upload(staging.as<float>(), canonical);
  backend_.reorder(plain(desc), staging.data(), desc, to);
}

std::vector<float> LayerHarness::get(const TensorDesc& desc, const void* from) {
  const Buffer staging = backend_.allocate(static_cast<size_t>(desc.shape.numel()) * sizeof(float));
  backend_.reorder(desc, from, plain(desc), staging.data());
  return memory().downloaded(staging.as<float>());
}

std::vector<float> LayerHarness::forward(std::span<const std::vector<float>> inputs, const StepStream& stream) {
  stream_ = stream;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() * sizeof(float) != input_descs_[i].bytes()) throw_error("input {} has another size", i);
    put(inputs[i], input_descs_[i], inputs_[i].data());
  }
  spoil(memory(), output_data_);
  const Io call = io();
  layer_->forward(call);
  return get(output_, call.y);
}

std::vector<float> LayerHarness::forward(const std::vector<float>& input, const StepStream& stream) {
  return forward(std::span<const std::vector<float>>(&input, 1), stream);
}

std::vector<std::vector<float>> LayerHarness::backward(const std::vector<float>& dy, bool accumulate) {
  if (dy.size() * sizeof(float) != output_.bytes()) throw_error("the output gradient has another size");
  put(dy, output_, output_gradient_.data());
  for (const Buffer& gradient : input_gradients_) spoil(memory(), gradient);
  Io call = io();
  call.dy = floats(output_gradient_);
  std::vector<void*> dx = dx_;
  if (options_.in_place) dx[0] = call.dy;
  call.dx = dx;
  call.accumulate = accumulate;
  layer_->backward(call);
  std::vector<std::vector<float>> result;
  for (size_t i = 0; i < dx.size(); ++i) {
    result.emplace_back();
    if (dx[i] == nullptr) continue;
    result[i] = get(input_descs_[i], dx[i]);
  }
  return result;
}

std::vector<float> LayerHarness::canonical(const ParameterSpec& spec, const WeightFormatPtr& format,
                                           const Buffer& buffer) const {
  std::vector<float> stored = memory().downloaded(buffer.as<float>()), out(static_cast<size_t>(spec.shape.numel()));
  if (format)
    format->load(stored, out);
  else
    std::copy_n(stored.begin(), out.size(), out.begin());
  return out;
}

std::vector<float> LayerHarness::gradient(const std::string& name) const {
  const size_t i = index_of(parameter_specs_, name);
  return canonical(parameter_specs_[i], formats_[i], gradients_[i]);
}

std::vector<float> LayerHarness::parameter(const std::string& name) const {
  const size_t i = index_of(parameter_specs_, name);
  return canonical(parameter_specs_[i], formats_[i], parameters_[i]);
}

std::vector<float> LayerHarness::buffer(const std::string& name) const {
  const size_t i = index_of(buffer_specs_, name);
  return canonical(buffer_specs_[i], nullptr, buffers_[i]);
}

}  // namespace lockstep::test

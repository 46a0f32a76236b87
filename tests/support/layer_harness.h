// One layer on its own: makes its parameters, binds it for one input shape, runs forward and backward, and hands back
// everything in the canonical (PyTorch) layout, whatever layouts the layer chose inside.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/buffer.h"
#include "nn/layer.h"

namespace lockstep::test {

class LayerHarness {
 public:
  struct Options {
    Phase phase = Phase::training;
    int64_t channel_block = 1;  // of input 0 and its like, where they have rank >= 4
    bool input_gradient = true;
    bool fuse_relu = false;  // throws when the layer declines
    bool fuse_input_relu_mask = false;
    bool in_place = false;  // output on input 0, dx on dy; throws when the layer doesn't allow it
  };
  // inputs: batch-first shapes. Parameters start at zero, or as initialize() leaves them once it is called.
  LayerHarness(Backend& backend, LayerPtr layer, std::span<const Shape> inputs, const Options& options);
  LayerHarness(Backend& backend, LayerPtr layer, const Shape& input, const Options& options);
  LayerHarness(Backend& backend, LayerPtr layer, const Shape& input);

  void initialize(Generator& generator);
  void set_parameter(const std::string& name, std::span<const float> canonical);
  void set_buffer(const std::string& name, std::span<const float> values);

  // Copies the inputs in; returns the output.
  std::vector<float> forward(std::span<const std::vector<float>> inputs, const StepStream& stream = {});
  std::vector<float> forward(const std::vector<float>& input, const StepStream& stream = {});
  // Returns the gradient of every input (empty vectors without input_gradient).
  std::vector<std::vector<float>> backward(const std::vector<float>& dy, bool accumulate = false);

  std::vector<float> gradient(const std::string& name) const;
  std::vector<float> buffer(const std::string& name) const;
  std::vector<float> parameter(const std::string& name) const;
  Shape output_shape() const { return output_.shape; }
  const Binding& binding() const { return binding_; }
  Layer& layer() { return *layer_; }

 private:
  Io io();
  const Memory& memory() const { return backend_.memory(); }
  void put(const std::vector<float>& canonical, const TensorDesc& desc, void* to);
  std::vector<float> get(const TensorDesc& desc, const void* from);
  std::vector<float> canonical(const ParameterSpec& spec, const WeightFormatPtr& format, const Buffer& buffer) const;

  Backend& backend_;
  LayerPtr layer_;
  Options options_;
  Binding binding_;
  TensorDesc output_;
  std::vector<TensorDesc> input_descs_;
  std::vector<ParameterSpec> parameter_specs_, buffer_specs_;
  std::vector<WeightFormatPtr> formats_;
  std::vector<Buffer> inputs_, input_gradients_, parameters_, gradients_, buffers_;
  Buffer output_data_, output_gradient_, workspace_, saved_;
  std::vector<const void*> x_;
  std::vector<void*> dx_;
  std::vector<float*> parameter_data_, gradient_data_, buffer_data_;
  StepStream stream_;
};

}  // namespace lockstep::test

// A layer: shapes, parameters and one bound plan. A Graph makes fresh layer objects for each batch size it is bound to;
// the parameters live in the ParameterStore and are shared.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace lockstep {

struct ParameterSpec {
  std::string name;  // "weight", "bias"
  Shape shape;       // canonical
};

// What bind() gets ...
struct BindContext {
  Backend& backend;
  Phase phase;
  bool input_gradient;                 // false: no gradient of the inputs is wanted (first layer)
  std::span<const TensorDesc> inputs;  // batch first; channel_block 1 unless accepts_blocked(), dtype as input_type()
  bool stored;                         // parameters are laid out already: `formats` is binding
  std::span<WeightFormatPtr> formats;  // one per parameter: set by the first bind, read by later ones
  std::span<const uint8_t> trainable = {};    // one per parameter, 0: frozen, no gradient is wanted; empty: all train
  StatisticsReducer* across_ranks = nullptr;  // batch statistics are of all ranks' samples; null: of the own

  bool trains(size_t parameter) const { return trainable.empty() || trainable[parameter] != 0; }
};
// ... and tells.
struct Binding {
  TensorDesc output;
  size_t workspace_bytes = 0;  // scratch during one call
  size_t saved_bytes = 0;      // forward -> backward
  bool backward_reads_input = true, backward_reads_output = false;
  bool alias = false;     // the output IS input 0's memory, unchanged (flatten): forward and backward are not called
  bool in_place = false;  // the output may lie where input 0 lies (same bytes); backward too: dx may be dy
};

// Randomness of one micro-step, private to (seed, virtual rank, step, micro-step); layers add their own id.
struct StepStream {
  uint64_t key = 0;
  Generator* torch = nullptr;  // PyTorch's own sequential stream, for layers that were told to use it
};

// Activations and their gradients are in the layout and type of their TensorDesc, parameters in fp32.
struct Io {
  std::span<const void* const> x;                         // inputs
  void* y = nullptr;                                      // output
  std::span<float*const> parameters, gradients, buffers;  // a frozen parameter's gradient is null
  bool new_parameters = true;                             // false: the same values as in this layer's last forward
  void* workspace = nullptr;
  void* saved = nullptr;
  const StepStream* stream = nullptr;
  // backward only
  void* dy = nullptr;          // gradient of the output; may be overwritten
  std::span<void* const> dx;   // gradients of the inputs, to be overwritten; null where not wanted
  bool accumulate = false;     // add to the parameter gradients instead of overwriting them
  const Io* before = nullptr;  // of the layer that makes x[0], where this one was paired with it
  // For layers that know fp32 only.
  const float* f32_x() const { return static_cast<const float*>(x[0]); }
  float* f32_y() const { return static_cast<float*>(y); }
  float* f32_dy() const { return static_cast<float*>(dy); }
  float* f32_dx() const { return static_cast<float*>(dx[0]); }
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::string_view kind() const = 0;  // "linear", as in the config
  // Output shape of one sample from the inputs' sample shapes (no batch axis). Throws Error when they don't fit.
  virtual Shape infer(std::span<const Shape> inputs) = 0;
  virtual std::vector<ParameterSpec> parameters() const { return {}; }  // valid after infer
  virtual std::vector<ParameterSpec> buffers() const { return {}; }
  // PyTorch's default initialisation, drawing from `generator` exactly what PyTorch draws. Canonical layout.
  virtual void initialize(Generator&, std::span<const std::span<float>> /*parameters*/,
                          std::span<const std::span<float>> /*buffers*/) const {}
  virtual bool accepts_blocked() const { return false; }  // inputs with channel_block > 1
  // The type in which the layer wants an input that its producer writes as `given`, in a network of this precision. The
  // output's type follows from it (usually the same). Layers that multiply take `precision`, those that only move
  // numbers `given`; the rest knows fp32 only. The graph converts.
  virtual DType input_type(DType /*given*/, DType /*precision*/) const { return DType::f32; }
  // Fusion, asked by the graph before bind: take the ReLU that follows, or mask the ReLU before (its backward).
  virtual bool fuse_relu() { return false; }
  virtual bool fuse_input_relu_mask() { return false; }
  // Told to a layer that took a ReLU: the layer after it applies that ReLU's mask, dy comes masked.
  virtual void gradient_premasked() {}
  // Told to a layer that alone reads the output of `producer`, which took a ReLU: when they are bound, the producer
  // first, the two may agree on what this one's backward does for the other's. True: Io::before will be set.
  virtual bool pair_with(Layer& /*producer*/) { return false; }
  virtual Binding bind(BindContext& context) = 0;
  virtual void forward(const Io& io) = 0;
  virtual void backward(const Io& io) = 0;  // training phase only
  // In place of forward and backward on a rank without samples in a micro-step: a layer that speaks with other ranks
  // takes its part in what they sum. Only io's buffers are valid.
  virtual void forward_empty(const Io&) {}
  virtual void backward_empty(const Io&) {}
};
using LayerPtr = std::unique_ptr<Layer>;

inline bool is_norm(const Layer& layer) { return layer.kind().ends_with("_norm"); }

}  // namespace lockstep

// A network bound to one batch size and phase: layers in execution order, every activation and gradient placed in one
// arena by lifetime, every pointer known. A step then only runs plans. In bf16 or fp16 precision layers store what they
// can in 16 bits; copies between them are nodes like any other. Input, output and parameters are always fp32.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/trace.h"
#include "nn/builder.h"
#include "nn/layer.h"
#include "nn/parameter_store.h"

namespace lockstep {

// Whether a parameter is frozen; `norm`: it belongs to a normalisation layer. Empty: none is.
using Freeze = std::function<bool(const Parameter& parameter, bool norm)>;

// Hears from backward that the gradient of a parameter is complete for this micro-step.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void on_ready(ParameterId id) = 0;
};

class Graph {
 public:
  // Binds `nodes` (made for this graph alone). Parameters are named, frozen and added to the store by the first graph
  // of a network and found there by the later ones; formats are set or obeyed likewise. Backward goes down to the
  // lowest parameter that is not frozen, and computes no gradient of a frozen one. across_ranks: BindContext's.
  Graph(std::vector<BuiltNode> nodes, const Shape& sample, int64_t batch, Phase phase, Backend& backend,
        ParameterStore& store, const Freeze& freeze = {}, StatisticsReducer* across_ranks = nullptr,
        DType precision = DType::f32);

  // Every layer's forward and backward goes there, under the layer's name ("conv1"), with its kind where the name is
  // but a number ("3 linear"); null: nowhere.
  void trace(TraceRow* row) { trace_ = row; }
  int64_t batch() const { return batch_; }
  size_t arena_bytes() const { return arena_bytes_; }
  // Fixes all pointers: `arena` has arena_bytes(), the store is laid out. Called again when the arena moves.
  void attach(void* arena);
  // Parameters in the order in which backward finishes them, or would if they were not frozen.
  std::vector<ParameterId> finish_order() const;
  std::vector<bool> norm_parameters() const;  // by ParameterId
  // Draws every layer's initial parameters in construction order, as the PyTorch script would.
  void initialize(Generator& generator) const;

  // x: [batch, sample...] in canonical layout, must stay valid until backward ends.
  void forward(const float* x, const StepStream& stream);
  TensorView output() const;  // [batch, ...], canonical layout
  // The next forward takes the parameters anew. repeated: a recording of a forward pass was started
  // (backend/recorder.h).
  bool new_parameters() const { return parameters_version_ != store_.version(); }
  void repeated() { parameters_version_ = store_.version(); }
  float* output_gradient() const { return output_gradient_; }
  // From output_gradient(). accumulate: parameter gradients are added to instead of overwritten.
  void backward(bool accumulate, GradientListener& listener);
  // The same for a rank without samples in this micro-step, which any training graph of the network stands for: layers
  // take part in collectives, gradients are zero, or as they were when accumulating.
  void forward_empty();
  void backward_empty(bool accumulate, GradientListener& listener);

 private:
  struct Use {
    int node, input;  // consumer and which of its inputs
  };
  struct Node {
    LayerPtr layer;
    std::string label;   // its name in traces
    Shape sample_shape;  // of the output
    std::vector<int> inputs;
    std::vector<ParameterId> parameters;
    std::vector<BufferId> buffers;
    Binding binding;
    std::vector<Use> uses;
    bool needs_gradient = false;  // of its output: a parameter that trains lies here or upstream
    bool paired = false;          // with the node of its input: Io::before
    bool share_gradient = false;  // the gradients of its output and of input 0 are the same memory
    int storage = 0;              // the node whose memory holds this output; kNetworkInput: the caller's
    int gradient_storage = 0;     // likewise for the output's gradient
    size_t value_offset = 0, gradient_offset = 0, saved_offset = 0;
    std::vector<size_t> extra_offset;  // per input; kNone: this use writes the input's gradient itself
    // Argument lists, filled by attach.
    std::vector<const void*> x;
    std::vector<void*> dx;
    std::vector<float*> values, gradients, buffer_values;
    Io io;
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // graph_bind.cpp: fusion, reorders, binding.
  void bind_all(std::vector<BuiltNode>& built);
  int bind_node(LayerPtr layer, const std::string& name, const Shape& sample, std::vector<int> inputs);
  int bind_reorder(int source, const TensorDesc& wanted);
  TensorDesc accepted(const Layer& layer, const std::vector<int>& inputs, int source) const;
  int in_form(const TensorDesc& wanted, int source);  // the source itself or a copy of it
  std::vector<ParameterId> parameters_of(const Layer& layer, const std::string& name);
  const TensorDesc& desc(int node) const;
  // graph_memory.cpp: which tensors share memory, lifetimes, offsets.
  void share_storage();
  bool may_overwrite_input(int index) const;
  void place_gradients_of_uses();
  void plan_arena();

  int last() const { return static_cast<int>(nodes_.size()) - 1; }
  Node& node(int index) { return nodes_[static_cast<size_t>(index)]; }
  const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  void backward(int index);

  Backend& backend_;
  ParameterStore& store_;
  StatisticsReducer* across_ranks_;
  int64_t batch_;
  Phase phase_;
  DType precision_;
  bool stored_;                     // the store was laid out before: formats are given
  const Freeze* freeze_ = nullptr;  // while binding
  TensorDesc input_desc_;
  std::vector<Node> nodes_;
  std::vector<std::string> names_;
  std::vector<Use> network_input_uses_;
  struct Copy {
    int source;
    TensorDesc wanted;
    int node;
  };
  std::vector<Copy> copies_;         // reorders made for layers
  uint64_t parameters_version_ = 0;  // of the last forward
  size_t arena_bytes_ = 0, workspace_offset_ = 0;
  float* output_ = nullptr;
  float* output_gradient_ = nullptr;
  TraceRow* trace_ = nullptr;
};

}  // namespace lockstep

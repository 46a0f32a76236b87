// Binding: takes fusions, inserts reorders, makes every layer's plan.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "nn/graph.h"
#include "nn/layers/reorder.h"

namespace lockstep {
namespace {

struct Fusion {
  std::vector<int> computed_by;  // for each node the node that now computes its output
  std::vector<bool> paired;      // with the node that makes its only input
};

// A ReLU whose input has no other reader is taken into the layer before it. Where it has one reader itself, that one
// may mask the gradient: a max pooling on its smaller side, a linear layer in the product that makes the gradient.
Fusion fuse(std::vector<BuiltNode>& built) {
  std::vector<int> readers(built.size(), 0);
  for (const BuiltNode& node : built) {
    for (int input : node.inputs) {
      if (input != kNetworkInput) ++readers[static_cast<size_t>(input)];
    }
  }
  std::vector<int> computed_by(built.size());
  std::vector<bool> paired(built.size(), false);
  for (size_t i = 0; i < built.size(); ++i) {
    computed_by[i] = static_cast<int>(i);
    if (built[i].inputs.size() != 1 || built[i].inputs[0] == kNetworkInput) continue;
    const auto source = static_cast<size_t>(built[i].inputs[0]);
    if (readers[source] != 1) continue;
    const auto producer = static_cast<size_t>(computed_by[source]);
    const bool source_is_fused_relu = producer != source;
    if (built[i].layer->kind() == "relu") {
      if (!source_is_fused_relu && built[producer].layer->fuse_relu()) computed_by[i] = static_cast<int>(producer);
    } else if (source_is_fused_relu && built[i].layer->fuse_input_relu_mask()) {
      built[producer].layer->gradient_premasked();
    } else if (source_is_fused_relu) {
      paired[i] = built[i].layer->pair_with(*built[producer].layer);
    }
  }
  return {std::move(computed_by), std::move(paired)};
}

}  // namespace

Graph::Graph(std::vector<BuiltNode> nodes, const Shape& sample, int64_t batch, Phase phase, Backend& backend,
             ParameterStore& store, const Freeze& freeze, StatisticsReducer* across_ranks, DType precision)
    : backend_(backend),
      store_(store),
      across_ranks_(across_ranks),
      batch_(batch),
      phase_(phase),
      precision_(precision),
      stored_(store.laid_out()),
      freeze_(&freeze) {
  input_desc_.shape = sample.with_front(batch);
  bind_all(nodes);
  freeze_ = nullptr;
  share_storage();
  place_gradients_of_uses();
  plan_arena();
}

const TensorDesc& Graph::desc(int index) const {
  return index == kNetworkInput ? input_desc_ : node(index).binding.output;
}

void Graph::bind_all(std::vector<BuiltNode>& built) {
  const auto [computed_by, paired] = fuse(built);
  std::vector<int> position(built.size(), -1);
  for (size_t i = 0; i < built.size(); ++i) {
    if (computed_by[i] != static_cast<int>(i)) {
      position[i] = position[static_cast<size_t>(computed_by[i])];
      continue;
    }
    std::vector<int> inputs;
    for (int input : built[i].inputs)
      inputs.push_back(input == kNetworkInput ? kNetworkInput : position[static_cast<size_t>(input)]);
    std::vector<int> sources;
    for (int source : inputs) sources.push_back(in_form(accepted(*built[i].layer, inputs, source), source));
    position[i] = bind_node(std::move(built[i].layer), built[i].name, built[i].sample_shape, std::move(sources));
    node(position[i]).paired = paired[i];
  }
  if (nodes_.empty()) throw_error("the model has no layers");
  TensorDesc output = desc(last());
  output.channel_block = 1;
  output.dtype = DType::f32;
  if (desc(last()) != output) bind_reorder(last(), output);
  for (int i = 0; i < last(); ++i) {
    if (node(i).uses.empty())
      throw_error("layer '{}' is not used by any later layer: the loss does not depend on it",
                  names_[static_cast<size_t>(i)]);
  }
}

TensorDesc Graph::accepted(const Layer& layer, const std::vector<int>& inputs, int source) const {
  const bool mixed = std::ranges::any_of(
      inputs, [&](int other) { return desc(other).channel_block != desc(inputs[0]).channel_block; });
  TensorDesc wanted = desc(source);
  if (!layer.accepts_blocked() || mixed) wanted.channel_block = 1;
  wanted.dtype = layer.input_type(wanted.dtype, precision_);
  return wanted;
}

int Graph::in_form(const TensorDesc& wanted, int source) {
  if (wanted == desc(source)) return source;
  for (const Copy& copy : copies_) {
    if (copy.source == source && copy.wanted == wanted) return copy.node;
  }
  copies_.push_back({source, wanted, bind_reorder(source, wanted)});
  return copies_.back().node;
}

int Graph::bind_reorder(int source, const TensorDesc& wanted) {
  const bool input = source == kNetworkInput;
  const Shape sample = input ? input_desc_.shape.without_front() : node(source).sample_shape;
  const std::string name = input ? "input" : names_[static_cast<size_t>(source)];
  return bind_node(make_reorder(sample, wanted.channel_block, wanted.dtype), name + " reordered", sample, {source});
}

std::vector<ParameterId> Graph::parameters_of(const Layer& layer, const std::string& name) {
  std::vector<ParameterId> ids;
  for (const ParameterSpec& spec : layer.parameters()) {
    const std::string full = name + "." + spec.name;
    ids.push_back(stored_ ? store_.find(full) : store_.add_parameter(full, spec.shape));
    const ParameterId id = ids.back();
    if (!stored_ && *freeze_ && (*freeze_)(store_.parameters()[static_cast<size_t>(id)], is_norm(layer)))
      store_.freeze(id);
  }
  return ids;
}

int Graph::bind_node(LayerPtr layer, const std::string& name, const Shape& sample, std::vector<int> inputs) {
  const int index = static_cast<int>(nodes_.size());
  Node made;
  std::vector<TensorDesc> descs;
  bool input_gradient = false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int source = inputs[k];
    descs.push_back(desc(source));
    if (source == kNetworkInput) {
      network_input_uses_.push_back({index, static_cast<int>(k)});
    } else {
      input_gradient |= node(source).needs_gradient;
      node(source).uses.push_back({index, static_cast<int>(k)});
    }
  }
  made.parameters = parameters_of(*layer, name);
  std::vector<uint8_t> trainable;
  for (ParameterId id : made.parameters) trainable.push_back(store_.parameters()[static_cast<size_t>(id)].trainable);
  int buffer = 0;
  for (const ParameterSpec& spec : layer->buffers()) {
    const std::string full = name + "." + spec.name;
    if (!stored_) {
      made.buffers.push_back(store_.add_buffer(full, spec.shape));
    } else {
      while (store_.buffers()[static_cast<size_t>(buffer)].name != full) ++buffer;
      made.buffers.push_back(buffer);
    }
  }
  std::vector<WeightFormatPtr> formats(made.parameters.size());
  if (stored_) {
    for (size_t k = 0; k < formats.size(); ++k)
      formats[k] = store_.parameters()[static_cast<size_t>(made.parameters[k])].format;
  }
  BindContext context{backend_, phase_, input_gradient, descs, stored_, formats, trainable, across_ranks_};
  made.binding = layer->bind(context);
  if (!stored_) {
    for (size_t k = 0; k < formats.size(); ++k) store_.set_format(made.parameters[k], formats[k]);
  }
  made.needs_gradient = phase_ == Phase::training && (input_gradient || std::ranges::count(trainable, 1) > 0);
  const bool number = name.find_first_not_of("0123456789.") == std::string::npos;
  made.label = number ? name + " " + std::string(layer->kind()) : name;
  made.layer = std::move(layer);
  made.sample_shape = sample;
  made.inputs = std::move(inputs);
  nodes_.push_back(std::move(made));
  names_.push_back(name);
  return index;
}

}  // namespace lockstep

#include "nn/graph.h"

#include <algorithm>

namespace lockstep {

void Graph::attach(void* arena) {
  auto* base = static_cast<std::byte*>(arena);
  const auto at = [base](size_t offset) -> void* { return base + offset; };
  const auto value_of = [&](int i) -> void* {
    return i == kNetworkInput || node(i).storage == kNetworkInput ? nullptr : at(node(node(i).storage).value_offset);
  };
  const auto gradient_of = [&](int i) -> void* {
    if (i == kNetworkInput || !node(i).needs_gradient) return nullptr;
    return at(node(node(i).gradient_storage).gradient_offset);
  };

  for (int i = 0; i <= last(); ++i) {
    Node& self = node(i);
    self.x.clear(), self.dx.clear(), self.values.clear(), self.gradients.clear(), self.buffer_values.clear();
    for (size_t k = 0; k < self.inputs.size(); ++k) {
      self.x.push_back(value_of(self.inputs[k]));
      void* gradient = gradient_of(self.inputs[k]);
      self.dx.push_back(gradient != nullptr && self.extra_offset[k] != kNone ? at(self.extra_offset[k]) : gradient);
    }
    for (ParameterId id : self.parameters) {
      self.values.push_back(store_.value(id).data());
      self.gradients.push_back(store_.gradient(id).data());
    }
    for (BufferId id : self.buffers) self.buffer_values.push_back(store_.buffer(id).data());
    self.io = {.x = self.x,
               .y = value_of(i),
               .parameters = self.values,
               .gradients = self.gradients,
               .buffers = self.buffer_values,
               .workspace = base + workspace_offset_,
               .saved = base + self.saved_offset,
               .dy = gradient_of(i),
               .dx = self.dx,
               .before = self.paired ? &node(self.inputs[0]).io : nullptr};
  }
  output_ = static_cast<float*>(value_of(last()));
  output_gradient_ = static_cast<float*>(gradient_of(last()));
}

std::vector<ParameterId> Graph::finish_order() const {
  std::vector<ParameterId> order;
  for (int i = last(); i >= 0; --i) {
    const auto& ids = node(i).parameters;
    order.insert(order.end(), ids.rbegin(), ids.rend());
  }
  return order;
}

std::vector<bool> Graph::norm_parameters() const {
  std::vector<bool> norms(store_.parameters().size(), false);
  for (const Node& self : nodes_) {
    if (!is_norm(*self.layer)) continue;
    for (ParameterId id : self.parameters) norms[static_cast<size_t>(id)] = true;
  }
  return norms;
}

void Graph::initialize(Generator& generator) const {
  for (const Node& self : nodes_) {
    std::vector<std::vector<float>> values, statistics;
    for (ParameterId id : self.parameters) values.push_back(store_.canonical_value(id));
    for (BufferId id : self.buffers) statistics.push_back(store_.buffer_copy(id));
    const std::vector<std::span<float>> parameters(values.begin(), values.end());
    const std::vector<std::span<float>> buffers(statistics.begin(), statistics.end());
    self.layer->initialize(generator, parameters, buffers);
    for (size_t k = 0; k < values.size(); ++k) store_.set_canonical(self.parameters[k], values[k]);
    for (size_t k = 0; k < statistics.size(); ++k) store_.set_buffer(self.buffers[k], statistics[k]);
  }
}

void Graph::forward(const float* x, const StepStream& stream) {
  const bool new_parameters = this->new_parameters();
  parameters_version_ = store_.version();
  for (const Use& use : network_input_uses_) node(use.node).x[static_cast<size_t>(use.input)] = x;
  for (int i = 0; i <= last(); ++i) {
    Node& self = node(i);
    if (self.binding.alias) {
      if (self.storage != kNetworkInput) continue;
      for (const Use& use : self.uses) node(use.node).x[static_cast<size_t>(use.input)] = x;
      continue;
    }
    self.io.stream = &stream;
    self.io.new_parameters = new_parameters;
    const TraceSpan span(trace_, TraceKind::forward, self.label);
    self.layer->forward(self.io);
  }
}

TensorView Graph::output() const { return {output_, desc(last())}; }

// One layer, up to the gradients of its inputs.
void Graph::backward(int index) {
  Node& self = node(index);
  const TraceSpan span(self.binding.alias && self.share_gradient ? nullptr : trace_, TraceKind::backward, self.label);
  if (!self.binding.alias) self.layer->backward(self.io);
  for (size_t k = 0; k < self.inputs.size(); ++k) {
    const int source = self.inputs[k];
    if (source == kNetworkInput || !node(source).needs_gradient) continue;
    void* gradient = node(source).io.dy;
    const DType type = desc(source).dtype;
    const auto count = static_cast<size_t>(desc(source).shape.numel());
    const bool first_writer = self.extra_offset[k] == kNone;
    if (self.binding.alias && !self.share_gradient && first_writer) {
      backend_.copy(type, count, self.io.dy, gradient);
    } else if (!first_writer) {
      backend_.add(type, count, gradient, self.binding.alias ? self.io.dy : self.dx[k], gradient);
    }
  }
}

void Graph::backward(bool accumulate, GradientListener& listener) {
  for (int i = last(); i >= 0; --i) {
    Node& self = node(i);
    if (!self.needs_gradient) continue;
    self.io.accumulate = accumulate;
    backward(i);
    for (size_t k = self.parameters.size(); k-- > 0;) {
      if (self.gradients[k] != nullptr) listener.on_ready(self.parameters[k]);
    }
  }
}

void Graph::forward_empty() {
  for (Node& self : nodes_) self.layer->forward_empty(self.io);
}

void Graph::backward_empty(bool accumulate, GradientListener& listener) {
  for (int i = last(); i >= 0; --i) {
    Node& self = node(i);
    if (!self.needs_gradient) continue;
    self.layer->backward_empty(self.io);
    for (size_t k = self.parameters.size(); k-- > 0;) {
      if (self.gradients[k] == nullptr) continue;
      if (!accumulate) store_.memory().zero(store_.gradient(self.parameters[k]));
      listener.on_ready(self.parameters[k]);
    }
  }
}

}  // namespace lockstep

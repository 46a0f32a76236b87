// A network's gradients after a window of micro-steps, on any backend.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "nn/network.h"

namespace lockstep::test {

struct GradientCase {
  ModelSpec model;
  Shape sample{24};
  int64_t batch = 32;
  DType type = DType::f32;
  std::vector<std::string> frozen;  // parameters by name
  int micro_steps = 1;
};

class NetworkGradients {
 public:
  NetworkGradients(Backend& backend, const GradientCase& c)
      : backend_(backend), case_(c), network_(c.model, c.sample, backend, c.batch, freeze(c.frozen), nullptr, c.type) {
    network_.lay_out([&](size_t bytes) { return backend.allocate(bytes); });
    Generator generator(3);
    network_.initialize(generator);
    x_ = backend.allocate(static_cast<size_t>(c.batch * c.sample.numel()) * sizeof(float));
    dy_ = backend.allocate(outputs() * sizeof(float));
  }
  Graph& graph() { return network_.graph(Phase::training, case_.batch); }
  ParameterStore& store() { return network_.store(); }

  void run() {
    for (int step = 0; step < case_.micro_steps; ++step) {
      prepare(step);
      forward();
      backward(step > 0);
    }
  }
  // The parts of it, for who counts what each of them queues.
  void prepare(int step) {
    const auto seed = static_cast<uint32_t>(step);
    backend_.memory().upload(x_.as<float>(), normal(x_.as<float>().size(), 10 + seed));
    backend_.memory().upload(dy_.as<float>(), normal(outputs(), 20 + seed));
  }
  void forward() { graph().forward(x_.as<float>().data(), {.key = 7}); }
  void backward(bool accumulate) {
    backend_.memory().copy(std::span(graph().output_gradient(), outputs()), dy_.as<float>());
    graph().backward(accumulate, listener_);
  }
  // Every parameter's gradient as PyTorch would have it, by ParameterId.
  std::vector<Floats> results() {
    std::vector<Floats> all;
    for (size_t id = 0; id < store().parameters().size(); ++id)
      all.push_back(store().canonical_gradient(static_cast<ParameterId>(id)));
    return all;
  }

 private:
  class Nobody final : public GradientListener {
    void on_ready(ParameterId) override {}
  };
  static Freeze freeze(const std::vector<std::string>& names) {
    return [names](const Parameter& parameter, bool) { return std::ranges::count(names, parameter.name) > 0; };
  }
  size_t outputs() const { return static_cast<size_t>(case_.batch * network_.output_shape().numel()); }

  Backend& backend_;
  GradientCase case_;
  Network network_;
  Nobody listener_;
  Buffer x_, dy_;
};

// Linear layers a, b, ... with ReLUs between them. apart: with a layer between them that does nothing, so that no two
// of them are a pair.
inline ModelSpec relu_network(const std::vector<int64_t>& widths, bool apart = false, bool bias = true) {
  ModelSpec model;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (i > 0) model.layers.push_back({.kind = "relu"});
    if (i > 0 && apart) model.layers.push_back({.kind = "flatten"});
    const std::string name(1, static_cast<char>('a' + i));
    model.layers.push_back({.kind = "linear", .name = name, .out = widths[i], .bias = bias});
  }
  return model;
}

}  // namespace lockstep::test

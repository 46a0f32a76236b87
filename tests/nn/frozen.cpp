// Graphs with frozen parameters: what backward reports, computes and leaves alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "nn/network.h"

using namespace lockstep;

namespace {

ModelSpec mlp() {
  return {.layers = {{.kind = "linear", .name = "a", .out = 5},
                     {.kind = "batch_norm", .name = "bn"},
                     {.kind = "tanh"},
                     {.kind = "linear", .name = "b", .out = 4},
                     {.kind = "linear", .name = "c", .out = 3}}};
}

class Names final : public GradientListener {
 public:
  explicit Names(const ParameterStore& store) : store_(store) {}
  void on_ready(ParameterId id) override { text += store_.parameters()[static_cast<size_t>(id)].name + " "; }
  std::string text;

 private:
  const ParameterStore& store_;
};

// What backward reports when the parameters whose names start so are frozen; the arena must be in that order.
std::string reported(const std::vector<std::string>& frozen) {
  const auto backend = make_cpu_backend({.threads = 1});
  Network network(mlp(), Shape{3}, *backend, 4, [&](const Parameter& parameter, bool) {
    return std::ranges::any_of(frozen, [&](const std::string& start) { return parameter.name.starts_with(start); });
  });
  network.lay_out(Buffer::host);
  Generator generator(1);
  network.initialize(generator);
  const std::vector<float> x(12, 0.5f);
  Graph& graph = network.graph(Phase::training, 4);
  graph.forward(x.data(), {});
  std::fill_n(graph.output_gradient(), 12, 1.0f);
  Names names(network.store());
  graph.backward(false, names);

  std::string arena;
  size_t end = 0;
  for (ParameterId id : network.store().arena_order()) {
    const Parameter& p = network.store().parameters()[static_cast<size_t>(id)];
    CHECK(p.offset >= end);
    end = p.offset + p.count;
    if (p.trainable) arena += p.name + " ";
    CHECK((p.offset < network.store().gradients().size()) == p.trainable);
    CHECK(network.store().gradient(id).size() == (p.trainable ? p.count : 0));
  }
  CHECK(arena == names.text);
  return names.text;
}

std::string refusal(const ModelSpec& model, const Freeze& freeze) {
  const auto backend = make_cpu_backend({.threads = 1});
  try {
    Network network(model, Shape{3}, *backend, 2, freeze);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("backward reports the parameters that train and no other") {
  CHECK(reported({}) == "c.bias c.weight b.bias b.weight bn.bias bn.weight a.bias a.weight ");
  CHECK(reported({"a", "bn"}) == "c.bias c.weight b.bias b.weight ");
  CHECK(reported({"b."}) == "c.bias c.weight bn.bias bn.weight a.bias a.weight ");
  CHECK(reported({"c.weight", "a.bias", "bn.weight"}) == "c.bias b.bias b.weight bn.bias a.weight ");
  CHECK(reported({"a", "b", "c.weight"}) == "c.bias ");
}

TEST_CASE("a graph of another batch size freezes the same parameters") {
  const auto backend = make_cpu_backend({.threads = 1});
  Network network(mlp(), Shape{3}, *backend, 4, [](const Parameter&, bool norm) { return norm; });
  network.lay_out(Buffer::host);
  Generator generator(1);
  network.initialize(generator);
  const std::vector<float> x(6, 0.5f);
  Graph& graph = network.graph(Phase::training, 2);
  graph.forward(x.data(), {});
  std::fill_n(graph.output_gradient(), 6, 1.0f);
  Names names(network.store());
  graph.backward(false, names);
  CHECK(names.text == "c.bias c.weight b.bias b.weight a.bias a.weight ");
}

TEST_CASE("a model with nothing to train is refused") {
  const auto all = [](const Parameter&, bool) { return true; };
  CHECK(refusal(mlp(), all) == "nothing to train: all 8 parameters are frozen (trainable: false)");
  CHECK(refusal({.layers = {{.kind = "tanh"}}}, {}) == "nothing to train: no layer of the model has parameters");
}

// Whole graphs: branches, shared memory, fusions and batch sizes, against PyTorch's numbers and against themselves.
#include "nn/graph.h"

#include <doctest/doctest.h>

#include <random>

#include "nn/network.h"
#include "support/finite_difference.h"
#include "support/golden.h"
#include "support/test_backend.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

class NoListener final : public GradientListener {
 public:
  void on_ready(ParameterId id) override { order.push_back(id); }
  std::vector<ParameterId> order;
};

LayerSpec conv(const char* name, int64_t out, int64_t kernel, int64_t padding, const char* input = "",
               bool bias = true) {
  return {.kind = "conv2d",
          .name = name,
          .input = input,
          .out = out,
          .kernel = {kernel, kernel},
          .padding = {padding, padding},
          .bias = bias};
}

// Finite differences need a smooth activation: a step across a ReLU's kink measures the kink.
ModelSpec residual_block(int64_t channels, int64_t classes, const char* activation = "relu") {
  return {.layers = {conv("conv1", channels, 3, 1, "", false),
                     {.kind = "batch_norm", .name = "bn1"},
                     {.kind = activation},
                     conv("conv2", channels, 3, 1, "", false),
                     {.kind = "batch_norm", .name = "bn2"},
                     conv("down", channels, 1, 0, "input", false),
                     {.kind = "add", .name = "sum", .input = "bn2", .add = "down"},
                     {.kind = activation},
                     {.kind = "adaptive_avg_pool2d"},
                     {.kind = "flatten"},
                     {.kind = "linear", .name = "fc", .out = classes}}};
}

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(engine);
  return values;
}

struct Fixture {
  std::unique_ptr<Backend> backend = make_test_backend({});
  Network network;
  NoListener listener;
  Buffer input;

  Fixture(const ModelSpec& model, const Shape& sample, int64_t batch) : network(model, sample, *backend, batch) {
    network.lay_out([this](size_t bytes) { return backend->allocate(bytes); });
    Generator generator(3);
    network.initialize(generator);
  }
  std::vector<float> forward(Graph& graph, const std::vector<float>& x) {
    input = on_device<float>(x);
    graph.forward(input.as<float>().data(), {.key = 11});
    return backend->memory().downloaded(graph.output().span());
  }
  void backward(Graph& graph, const std::vector<float>& dy, bool accumulate = false) {
    backend->memory().upload(std::span(graph.output_gradient(), dy.size()), dy);
    graph.backward(accumulate, listener);
  }
  template <class T>
  Buffer on_device(std::span<const T> values) {
    Buffer made = backend->allocate(values.size_bytes());
    backend->memory().upload(made.data(), values.data(), values.size_bytes());
    return made;
  }
  std::vector<float> gradient(const std::string& name) {
    return network.store().canonical_gradient(network.store().find(name));
  }
};

// Every parameter gradient of sum(y * dy) against finite differences.
void check_gradients(const ModelSpec& model, const Shape& sample, int64_t batch) {
  Fixture f(model, sample, batch);
  Graph& graph = f.network.graph(Phase::training, batch);
  const auto x = random_values(static_cast<size_t>(batch * sample.numel()), 1);
  const auto y = f.forward(graph, x);
  const auto dy = random_values(y.size(), 2);
  f.backward(graph, dy);
  for (size_t id = 0; id < f.network.store().parameters().size(); ++id) {
    const auto parameter = static_cast<ParameterId>(id);
    CAPTURE(f.network.store().parameters()[id].name);
    const auto start = f.network.store().canonical_value(parameter);
    const auto gradient = f.network.store().canonical_gradient(parameter);
    const auto loss = [&](const std::vector<float>& values) {
      f.network.store().set_canonical(parameter, values);
      return dot(f.forward(graph, x), dy);
    };
    CHECK(gradient_differs(loss, start, gradient, 7, 1e-2) == "");
    f.network.store().set_canonical(parameter, start);
  }
}

}  // namespace

TEST_CASE("a residual block with batch norm gives PyTorch's logits gradients buffers and step") {
  const auto& g = golden("loss_and_norm.json")["residual"][0];
  Fixture f(residual_block(4, 3), Shape{2, 5, 5}, 3);
  ParameterStore& store = f.network.store();
  for (const auto& [name, values] : g["params"].items()) store.set_canonical(store.find(name), flat_f32(values));
  const auto x = flat_f32(g["x"]);
  const auto labels = flat_i64(g["target"]);
  Graph& graph = f.network.graph(Phase::training, 3);
  CHECK(differs(f.forward(graph, x), flat_f32(g["logits"]), 1e-5, 1e-5) == "");

  const auto loss = f.backend->plan_loss({}, 3, 3);
  const Buffer device_labels = f.on_device<int64_t>(labels);
  const TensorView target{device_labels.data(), {Shape{3}, 1, DType::i64}};
  const LossSums sums = loss->forward_backward(graph.output(), target, 1.0 / 3, graph.output_gradient());
  CHECK(sums.loss / sums.weight == doctest::Approx(g["loss"].get<double>()).epsilon(1e-5));
  graph.backward(false, f.listener);
  for (const auto& [name, values] : g["grads"].items()) {
    CAPTURE(name);
    CHECK(differs(f.gradient(name), flat_f32(values), 1e-5, 1e-5) == "");
  }
  for (size_t id = 0; id < store.buffers().size(); ++id) {
    const std::string& name = store.buffers()[id].name;
    CAPTURE(name);
    CHECK(differs(store.buffer_copy(static_cast<BufferId>(id)), flat_f32(g["buffers_after"][name]), 1e-5, 1e-5) == "");
  }
  const Buffer momentum = f.backend->allocate(store.values().size_bytes());
  f.backend->optimizer_ops().sgd({.lr = 0.1, .momentum = 0.9, .first_step = true}, store.values().size(),
                                 store.values().data(), store.gradients().data(), momentum.as<float>().data());
  for (const auto& [name, values] : g["after_sgd_lr0.1_momentum0.9"].items()) {
    CAPTURE(name);
    CHECK(differs(store.canonical_value(store.find(name)), flat_f32(values), 1e-5, 1e-5) == "");
  }
  CHECK(differs(f.forward(f.network.graph(Phase::inference, 3), x), flat_f32(g["eval_logits_after_step"]), 1e-5,
                1e-5) == "");
}

TEST_CASE("gradients of a branching network agree with finite differences") {
  check_gradients(residual_block(4, 3, "gelu"), Shape{2, 5, 5}, 3);
}

TEST_CASE("fused ReLUs and masked pooling give the gradients of separate layers") {
  // leaky_relu with slope 0 is the same function, and nothing fuses with it.
  const auto model = [](const char* relu) {
    return ModelSpec{.layers = {conv("conv1", 16, 3, 0),
                                {.kind = relu, .negative_slope = 0},
                                conv("conv2", 32, 3, 0),
                                {.kind = relu, .negative_slope = 0},
                                {.kind = "max_pool2d", .kernel = {2, 2}, .stride = {2, 2}},
                                {.kind = "flatten"},
                                {.kind = "linear", .name = "fc1", .out = 20},
                                {.kind = relu, .negative_slope = 0},
                                {.kind = "linear", .name = "fc2", .out = 5}}};
  };
  Fixture fused(model("relu"), Shape{1, 8, 8}, 4), separate(model("leaky_relu"), Shape{1, 8, 8}, 4);
  const auto x = random_values(4 * 64, 1), dy = random_values(20, 2);
  std::vector<std::vector<float>> gradients;
  for (Fixture* f : {&fused, &separate}) {
    Graph& graph = f->network.graph(Phase::training, 4);
    const auto y = f->forward(graph, x);
    f->backward(graph, dy);
    for (const Parameter& p : f->network.store().parameters()) gradients.push_back(f->gradient(p.name));
  }
  const size_t count = gradients.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    CAPTURE(fused.network.store().parameters()[i].name);
    CHECK(differs(gradients[i], gradients[count + i], 1e-5, 1e-5) == "");
  }
}

TEST_CASE("gradients agree with finite differences where channels are blocked") {
  const ModelSpec model{.layers = {conv("conv1", 16, 3, 0),
                                   {.kind = "tanh"},
                                   conv("conv2", 32, 3, 0),
                                   {.kind = "avg_pool2d", .kernel = {2, 2}, .stride = {2, 2}},
                                   {.kind = "flatten"},
                                   {.kind = "linear", .name = "fc1", .out = 20},
                                   {.kind = "gelu"},
                                   {.kind = "linear", .name = "fc2", .out = 5}}};
  check_gradients(model, Shape{1, 8, 8}, 4);
}

TEST_CASE("a blocked tensor is reordered where a layer needs the canonical layout") {
  const ModelSpec model{.layers = {conv("conv1", 16, 3, 1),
                                   {.kind = "group_norm", .name = "gn", .groups = 4},
                                   {.kind = "gelu"},
                                   conv("conv2", 16, 3, 1),
                                   {.kind = "add", .input = "", .add = "gn"},
                                   {.kind = "flatten"},
                                   {.kind = "layer_norm", .name = "ln"},
                                   {.kind = "linear", .name = "fc", .out = 3}}};
  check_gradients(model, Shape{3, 4, 4}, 2);
}

TEST_CASE("a tensor read three times gets the sum of three gradients") {
  const ModelSpec model{.layers = {{.kind = "linear", .name = "a", .out = 6},
                                   {.kind = "tanh", .name = "t"},
                                   {.kind = "linear", .name = "b", .input = "t", .out = 6},
                                   {.kind = "add", .name = "s", .input = "b", .add = "t"},
                                   {.kind = "sigmoid", .name = "g"},
                                   {.kind = "add", .name = "u", .input = "g", .add = "t"},
                                   {.kind = "linear", .name = "c", .out = 2}}};
  check_gradients(model, Shape{5}, 4);
}

TEST_CASE("a tensor that is read again later is not overwritten by a layer that works in place") {
  for (const char* activation : {"relu", "tanh", "sigmoid"}) {
    CAPTURE(activation);
    const ModelSpec model{.layers = {{.kind = "linear", .name = "a", .out = 3},
                                     {.kind = "flatten"},
                                     {.kind = activation},
                                     {.kind = "linear", .name = "b", .out = 3},
                                     {.kind = "add", .name = "sum", .input = "b", .add = "a"}}};
    Fixture f(model, Shape{3}, 2);
    ParameterStore& store = f.network.store();
    store.set_canonical(store.find("a.weight"), std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
    store.set_canonical(store.find("a.bias"), std::vector<float>(3));
    store.set_canonical(store.find("b.weight"), std::vector<float>(9));
    store.set_canonical(store.find("b.bias"), std::vector<float>(3));
    const std::vector<float> x{-2, -1, 0.5F, 1, 2, -3};  // a is x and b is 0, so the sum is x
    CHECK(f.forward(f.network.graph(Phase::training, 2), x) == x);
    CHECK(f.forward(f.network.graph(Phase::inference, 2), x) == x);
    if (std::string_view(activation) != "relu") check_gradients(model, Shape{3}, 2);
  }
}

TEST_CASE("a tensor added to itself doubles its gradient") {
  const ModelSpec model{.layers = {{.kind = "linear", .name = "a", .out = 4},
                                   {.kind = "add", .name = "twice", .input = "a", .add = "a"}}};
  Fixture f(model, Shape{3}, 2);
  Graph& graph = f.network.graph(Phase::training, 2);
  const auto x = random_values(6, 4);
  f.forward(graph, x);
  f.backward(graph, std::vector<float>(8, 1.0f));
  CHECK(f.gradient("a.bias") == std::vector<float>(4, 4.0f));
}

TEST_CASE("the parts of a batch accumulate to the gradient of the whole") {
  Fixture f(preset_model("mnist_convnet"), Shape{1, 12, 12}, 6);
  const auto x = random_values(6 * 144, 1), dy = random_values(60, 2);
  Graph& whole = f.network.graph(Phase::training, 6);
  f.forward(whole, x);
  f.backward(whole, dy);
  const auto gradients = [&] { return f.backend->memory().downloaded(f.network.store().gradients()); };
  const std::vector<float> expected = gradients();
  bool accumulate = false;
  for (int64_t begin = 0; begin < 6;) {
    const int64_t count = begin == 0 ? 1 : begin == 1 ? 2 : 3;  // unequal parts
    Graph& part = f.network.graph(Phase::training, count);
    const std::vector<float> rows(x.begin() + begin * 144, x.begin() + (begin + count) * 144);
    f.forward(part, rows);
    f.backward(part, {dy.begin() + begin * 10, dy.begin() + (begin + count) * 10}, accumulate);
    accumulate = true;
    begin += count;
  }
  CHECK(differs(gradients(), expected, 1e-4, 1e-4) == "");
}

TEST_CASE("backward reports every parameter once in the order of the gradient arena") {
  Fixture f(preset_model("mnist_convnet"), Shape{1, 28, 28}, 2);
  Graph& graph = f.network.graph(Phase::training, 2);
  f.forward(graph, random_values(2 * 784, 1));
  f.backward(graph, random_values(20, 2));
  const auto order = f.network.store().arena_order();
  CHECK(f.listener.order == std::vector<ParameterId>(order.begin(), order.end()));
  CHECK(f.network.store().total_parameters() == 1199882);
}

TEST_CASE("inference leaves dropout out and gives every sample its own result") {
  Fixture f(preset_model("mnist_example"), Shape{1, 12, 12}, 4);
  const auto x = random_values(3 * 144, 5);
  const auto together = f.forward(f.network.graph(Phase::inference, 3), x);
  for (int64_t i = 0; i < 3; ++i) {
    const auto alone =
        f.forward(f.network.graph(Phase::inference, 1), {x.begin() + i * 144, x.begin() + (i + 1) * 144});
    CHECK(differs(alone, std::span(together).subspan(static_cast<size_t>(i) * 10, 10), 1e-4, 1e-4) == "");
  }
}

TEST_CASE("models that cannot be built say where and why") {
  const auto backend = make_test_backend({});
  const auto build = [&](std::vector<LayerSpec> layers) {
    Network network({.layers = std::move(layers)}, Shape{4}, *backend, 2);
  };
  CHECK_THROWS_WITH(build({}), "the model has no layers");
  CHECK_THROWS_WITH(build({{.kind = "lineer", .where = "m.yaml:3:5"}}),
                    doctest::Contains("m.yaml:3:5: unknown layer kind 'lineer'"));
  CHECK_THROWS_WITH(build({{.kind = "relu", .input = "nobody", .where = "m.yaml:3:5"}}),
                    doctest::Contains("reads 'nobody'"));
  CHECK_THROWS_WITH(
      build({{.kind = "linear", .name = "a", .out = 3}, {.kind = "linear", .name = "b", .input = "input", .out = 2}}),
      "layer 'a' is not used by any later layer: the loss does not depend on it");
  CHECK_THROWS_WITH(build({{.kind = "linear", .name = "a", .out = 3}, {.kind = "linear", .name = "a", .out = 2}}),
                    doctest::Contains("named 'a.weight'"));
}

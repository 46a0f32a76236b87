// Whole graphs in bf16 and fp16 against the same network in fp32, in every way to compute products.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/cpu_features.h"
#include "nn/network.h"

using namespace lockstep;

namespace {

class NoListener final : public GradientListener {
 public:
  void on_ready(ParameterId) override {}
};

struct Way {
  DType type;
  Bf16Products products;
  double output, gradient;  // rel-L2 error allowed; gradients have that of ReLUs and maxima that decide otherwise, too
};

std::vector<Way> ways() {
  std::vector<Way> all{{DType::bf16, Bf16Products::converted, 1e-2, 0.12},
                       {DType::f16, Bf16Products::detect, 2e-3, 0.04}};
  if (detect_isa() == Isa::avx512) {
    all.push_back({DType::bf16, Bf16Products::avx512, 1e-2, 0.12});
    all.push_back({DType::bf16, Bf16Products::amx, 1e-2, 0.12});
  } else {
    MESSAGE("skipped: oneDNN's bf16 needs AVX-512");
  }
  return all;
}

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

LayerSpec max_pool(int64_t size) { return {.kind = "max_pool2d", .kernel = {size, size}, .stride = {2, 2}}; }

const ModelSpec kConvNet{.layers = {conv("conv1", 32, 3, 0),
                                    {.kind = "relu"},
                                    conv("conv2", 64, 3, 0),
                                    {.kind = "relu"},
                                    max_pool(2),
                                    {.kind = "flatten"},
                                    {.kind = "linear", .name = "fc1", .out = 96},
                                    {.kind = "relu"},
                                    {.kind = "linear", .name = "fc2", .out = 10}}};

// Everything that the graph must convert for, and a tensor that two layers read.
const ModelSpec kResidual{.layers = {conv("conv1", 16, 3, 1, "", false),
                                     {.kind = "batch_norm", .name = "bn1"},
                                     {.kind = "relu", .name = "stem"},
                                     conv("conv2", 16, 3, 1),
                                     {.kind = "group_norm", .name = "gn", .groups = 4},
                                     conv("down", 16, 1, 0, "stem"),
                                     {.kind = "add", .name = "sum", .input = "gn", .add = "down"},
                                     {.kind = "gelu"},
                                     max_pool(3),
                                     {.kind = "adaptive_avg_pool2d", .output_size = {2, 2}},
                                     {.kind = "flatten"},
                                     {.kind = "linear", .name = "fc1", .out = 40},
                                     {.kind = "tanh"},
                                     {.kind = "linear", .name = "fc2", .out = 5},
                                     {.kind = "softmax"}}};

const ModelSpec kMlp{.layers = {{.kind = "flatten"},
                                {.kind = "linear", .name = "fc1", .out = 30},
                                {.kind = "leaky_relu"},
                                {.kind = "layer_norm", .name = "ln"},
                                {.kind = "dropout", .p = 0.25},
                                {.kind = "linear", .name = "fc2", .out = 7}}};

struct Trained {
  std::vector<float> y;
  std::vector<std::vector<float>> gradients;  // canonical, by parameter
  size_t arena = 0;
};

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(engine);
  return values;
}

struct Fixture {
  std::unique_ptr<Backend> backend;
  Network network;
  NoListener listener;
  int64_t batch;

  Fixture(const ModelSpec& model, const Shape& sample, int64_t rows, DType type, Bf16Products products)
      : backend(make_cpu_backend({.bf16 = products})),
        network(model, sample, *backend, rows, {}, nullptr, type),
        batch(rows) {
    network.lay_out(Buffer::host);
    Generator generator(3);
    network.initialize(generator);
  }
  std::vector<float> forward(const std::vector<float>& x) {
    Graph& graph = network.graph(Phase::training, batch);
    graph.forward(x.data(), {.key = 11});
    const auto y = graph.output().span();
    return {y.begin(), y.end()};
  }
  Trained train(const Shape& sample, int times = 1) {
    Graph& graph = network.graph(Phase::training, batch);
    Trained result;
    const auto x = random_values(static_cast<size_t>(batch * sample.numel()), 1);
    for (int i = 0; i < times; ++i) {
      result.y = forward(x);
      const auto dy = random_values(result.y.size(), 2);
      std::ranges::copy(dy, graph.output_gradient());
      graph.backward(i > 0, listener);
    }
    CHECK(graph.output().desc.dtype == DType::f32);
    for (size_t id = 0; id < network.store().parameters().size(); ++id)
      result.gradients.push_back(network.store().canonical_gradient(static_cast<ParameterId>(id)));
    result.arena = graph.arena_bytes();
    return result;
  }
};

double relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  double error = 0, norm = 1e-30;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(found[i]) - static_cast<double>(expected[i]);
    error += difference * difference, norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(error / norm);
}

void check_model(const ModelSpec& model, const Shape& sample, int64_t batch) {
  const Trained expected = Fixture(model, sample, batch, DType::f32, Bf16Products::detect).train(sample);
  for (const Way& way : ways()) {
    CAPTURE(name(way.type));
    CAPTURE(static_cast<int>(way.products));
    Fixture f(model, sample, batch, way.type, way.products);
    const Trained found = f.train(sample);
    const double output = relative_error(found.y, expected.y);
    CHECK(output < way.output);
    CHECK(output > 1e-5);  // really another precision
    for (size_t id = 0; id < expected.gradients.size(); ++id) {
      CAPTURE(f.network.store().parameters()[id].name);
      CHECK(relative_error(found.gradients[id], expected.gradients[id]) < way.gradient);
    }
  }
}

}  // namespace

TEST_CASE("a convolutional network in 16 bits has the outputs and gradients of fp32 up to rounding") {
  check_model(kConvNet, Shape{1, 20, 20}, 8);
}

TEST_CASE("a network of layers that only know fp32 is converted in between") {
  check_model(kResidual, Shape{3, 13, 13}, 6);
  check_model(kMlp, Shape{2, 4, 4}, 9);
}

TEST_CASE("activations of bf16 take about half the memory where products are computed in bf16") {
  if (detect_isa() != Isa::avx512) {
    MESSAGE("skipped: oneDNN's bf16 needs AVX-512");
    return;
  }
  const Shape sample{1, 20, 20};
  const size_t f32 = Fixture(kConvNet, sample, 32, DType::f32, Bf16Products::detect).train(sample).arena;
  for (const Bf16Products products : {Bf16Products::avx512, Bf16Products::amx})
    CHECK(Fixture(kConvNet, sample, 32, DType::bf16, products).train(sample).arena < f32 * 6 / 10);
}

TEST_CASE("new parameters reach every graph and accumulated gradients are fp32 sums") {
  const Shape sample{1, 20, 20};
  const auto x = random_values(8 * 400, 5);
  for (const Way& way : ways()) {
    CAPTURE(name(way.type));
    CAPTURE(static_cast<int>(way.products));
    Fixture f(kConvNet, sample, 8, way.type, way.products), fresh(kConvNet, sample, 8, way.type, way.products);
    Graph& evaluation = f.network.graph(Phase::inference, 8);
    const auto evaluated = [&] {
      evaluation.forward(x.data(), {});
      const auto y = evaluation.output().span();
      return std::vector<float>(y.begin(), y.end());
    };
    const auto before = f.forward(x);
    CHECK(relative_error(evaluated(), before) < 2e-3);  // where inference has another kernel, roundings differ
    for (Fixture* each : {&f, &fresh})
      for (float& value : each->network.store().values()) value *= 0.5F;
    const auto after = f.forward(x);
    CHECK(relative_error(after, before) > 0.1);
    CHECK(after == fresh.forward(x));
    CHECK(relative_error(evaluated(), after) < 2e-3);

    const Trained once = fresh.train(sample);
    const Trained twice = fresh.train(sample, 2);
    for (size_t id = 0; id < once.gradients.size(); ++id) {
      std::vector<float> doubled = once.gradients[id];
      for (float& value : doubled) value *= 2;
      CHECK(relative_error(twice.gradients[id], doubled) < 1e-6);
    }
  }
}

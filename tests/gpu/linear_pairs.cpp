// Linear layers that share a backward pass, beside the same layers that do not and beside the CPU's.
#include <doctest/doctest.h>

#include "gpu/network_gradients.h"
#include "gpu/operation.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<Floats> run(Backend& backend, const GradientCase& c) {
  NetworkGradients network(backend, c);
  network.run();
  return network.results();
}

}  // namespace

TEST_CASE("gradients of linear layers in a row are those of linear layers apart and of the CPU") {
  const auto cpu = make_backend("cpu", {});
  const auto gpu = make_backend("cuda", {}, {.index = 0});
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const int micro_steps : {1, 3}) {
      CAPTURE(name(type));
      CAPTURE(micro_steps);
      GradientCase c{.model = relu_network({32, 40, 16, 8}), .type = type, .micro_steps = micro_steps};
      const std::vector<Floats> found = run(*gpu, c);
      if (type == DType::f32) compare_all(found, run(*cpu, c), 1e-5);
      c.model = relu_network({32, 40, 16, 8}, true);
      compare_all(found, run(*gpu, c), type == DType::f32 ? 1e-5 : tolerance_of(type));
    }
  }
}

TEST_CASE("an input of a ReLU that is zero has no gradient") {
  // Nothing but the bias, which is zero, comes into the first layer.
  const auto gpu = make_backend("cuda", {}, {.index = 0});
  NetworkGradients network(*gpu, {.model = relu_network({16, 8})});
  for (const char* name : {"a.weight", "a.bias"}) {
    const ParameterId id = network.store().find(name);
    const size_t count = network.store().parameters()[static_cast<size_t>(id)].count;
    network.store().set_canonical(id, Floats(count, 0));
  }
  network.run();
  const std::vector<Floats> results = network.results();
  for (const ParameterId id : {network.store().find("a.weight"), network.store().find("a.bias")})
    for (const float gradient : results[static_cast<size_t>(id)]) CHECK_EQ(gradient, 0.0F);
}

TEST_CASE("gradients of linear layers have the same bits every time") {
  for (const DType type : {DType::f32, DType::bf16}) {
    CAPTURE(name(type));
    const GradientCase c{
        .model = relu_network({512, 384, 10}), .sample = Shape{256}, .batch = 512, .type = type, .micro_steps = 2};
    const auto gpu = make_backend("cuda", {}, {.index = 0});
    NetworkGradients network(*gpu, c);
    network.run();
    const std::vector<Floats> first = network.results();
    for (int again = 0; again < 2; ++again) {
      network.run();
      CHECK(network.results() == first);
    }
  }
}

// Every layer's gradients against finite differences, in plain and blocked layouts.
#include <doctest/doctest.h>

#include <algorithm>

#include "nn/layers/layers.h"
#include "support/finite_difference.h"
#include "support/golden.h"
#include "support/layer_harness.h"
#include "support/oracle.h"
#include "support/test_backend.h"

using namespace lockstep;
using namespace lockstep::test;
using oracle::random_floats;

namespace {

LayerSpec spec_of(const std::string& kind) {
  LayerSpec spec;
  spec.kind = kind;
  return spec;
}

// All values differ by 0.11 at least and stay 0.05 from zero: no step of the difference crosses a kink or changes a
// maximum.
std::vector<float> separated(size_t count, uint32_t seed) {
  const std::vector<float> order = random_floats(count, seed);
  std::vector<size_t> rank(count);
  for (size_t i = 0; i < count; ++i) rank[i] = i;
  std::ranges::sort(rank, {}, [&](size_t i) { return order[i]; });
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i)
    x[rank[i]] = (static_cast<float>(i) - static_cast<float>(count / 2) + 0.5F) * 0.11F;
  return x;
}

void check_gradients(LayerPtr layer, const Shape& shape, const std::vector<float>& x, int64_t block = 1) {
  const auto backend = make_test_backend({});
  CAPTURE(layer->kind());
  CAPTURE(block);
  LayerHarness harness(*backend, std::move(layer), shape, {.channel_block = block});
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : harness.layer().parameters()) {
    names.push_back(parameter.name);
    harness.set_parameter(parameter.name, random_floats(static_cast<size_t>(parameter.shape.numel()), 5, 0.5F, 1.5F));
  }
  const std::vector<float> projection = random_floats(static_cast<size_t>(harness.output_shape().numel()), 6);
  harness.forward(x);
  const auto dx = harness.backward(projection);
  std::vector<std::vector<float>> gradients;
  for (const std::string& name : names) gradients.push_back(harness.gradient(name));
  CHECK_EQ(
      gradient_differs([&](const std::vector<float>& at) { return dot(harness.forward(at), projection); }, x, dx[0], 7),
      "");
  for (size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    const std::vector<float> value = harness.parameter(names[i]);
    const auto f = [&](const std::vector<float>& at) {
      harness.set_parameter(names[i], at);
      return dot(harness.forward(x), projection);
    };
    CHECK_EQ(gradient_differs(f, value, gradients[i], 8), "");
    harness.set_parameter(names[i], value);
  }
}

}  // namespace

TEST_CASE("gradients: activations and softmax") {
  const Shape shape{4, 16, 2, 3};
  const std::vector<float> x = random_floats(384, 1, 0.1F, 1), mixed = random_floats(384, 2, -2, 2);
  std::vector<float> signs = x;
  for (size_t i = 0; i < signs.size(); i += 2) signs[i] = -signs[i];
  for (const int64_t block : {1, 8, 16}) {
    check_gradients(make_relu(spec_of("relu")), shape, signs, block);
    check_gradients(make_leaky_relu(spec_of("leaky_relu")), shape, signs, block);
    check_gradients(make_gelu(spec_of("gelu")), shape, mixed, block);
    check_gradients(make_tanh(spec_of("tanh")), shape, mixed, block);
    check_gradients(make_sigmoid(spec_of("sigmoid")), shape, mixed, block);
  }
  LayerSpec approximate = spec_of("gelu");
  approximate.tanh_approximation = true;
  check_gradients(make_gelu(approximate), shape, mixed);
  check_gradients(make_softmax(spec_of("softmax")), shape, mixed);
}

TEST_CASE("gradients: pooling") {
  const Shape shape{2, 16, 5, 6};
  const std::vector<float> x = separated(960, 3);
  LayerSpec two = spec_of("pool");
  two.kernel = two.stride = {2, 2};
  LayerSpec overlapping = spec_of("pool");
  overlapping.kernel = {3, 3};
  overlapping.stride = {2, 2};
  overlapping.padding = {1, 1};
  LayerSpec dilated = overlapping;
  dilated.kernel = {2, 3};
  dilated.stride = {1, 2};
  dilated.dilation = {3, 2};
  LayerSpec adaptive = spec_of("pool");
  adaptive.output_size = {2, 4};
  for (const int64_t block : {1, 8, 16}) {
    for (const LayerSpec& spec : {two, overlapping}) {
      check_gradients(make_max_pool2d(spec), shape, x, block);
      check_gradients(make_avg_pool2d(spec), shape, x, block);
    }
    check_gradients(make_max_pool2d(dilated), shape, x, block);
    check_gradients(make_adaptive_avg_pool2d(adaptive), shape, x, block);
    check_gradients(make_adaptive_max_pool2d(adaptive), shape, x, block);
  }
}

TEST_CASE("gradients: normalisations") {
  const Shape shape{3, 16, 2, 4};
  const std::vector<float> x = random_floats(384, 4, -2, 2);
  for (const int64_t block : {1, 8, 16}) check_gradients(make_batch_norm(spec_of("batch_norm")), shape, x, block);
  check_gradients(make_batch_norm(spec_of("batch_norm")), Shape{24, 16}, x);
  check_gradients(make_layer_norm(spec_of("layer_norm")), shape, x);
  LayerSpec last = spec_of("layer_norm");
  last.normalized_shape = {2, 4};
  check_gradients(make_layer_norm(last), shape, x);
  LayerSpec groups = spec_of("group_norm");
  groups.groups = 4;
  check_gradients(make_group_norm(groups), shape, x);
  groups.affine = false;
  check_gradients(make_group_norm(groups), shape, x);
}

TEST_CASE("gradients: dropout with a fixed stream") {
  check_gradients(make_dropout(spec_of("dropout"), 3), Shape{2, 16, 3, 3}, random_floats(288, 5), 8);
}

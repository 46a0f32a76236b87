// Shapes, fusions, aliasing and messages of the layers without weights.
#include <doctest/doctest.h>

#include "core/error.h"
#include "nn/layers/layers.h"
#include "support/golden.h"
#include "support/layer_harness.h"
#include "support/oracle.h"
#include "support/test_backend.h"

using namespace lockstep;
using namespace lockstep::test;
using oracle::random_floats;

static LayerSpec spec_of(const std::string& kind) {
  LayerSpec spec;
  spec.kind = kind;
  return spec;
}

TEST_CASE("flatten: a plain input becomes rows and a blocked one keeps its description") {
  const auto backend = make_test_backend({});
  const std::vector<float> x = random_floats(2 * 16 * 6, 1), dy = random_floats(2 * 16 * 6, 2);
  LayerHarness plain(*backend, make_flatten(spec_of("flatten")), Shape{2, 16, 2, 3});
  CHECK_EQ(plain.output_shape().str(), "[2, 96]");
  CHECK_EQ(differs(plain.forward(x), x, 0, 0), "");
  CHECK_EQ(differs(plain.backward(dy)[0], dy, 0, 0), "");
  LayerHarness blocked(*backend, make_flatten(spec_of("flatten")), Shape{2, 16, 2, 3},
                       {.channel_block = 8, .in_place = true});
  CHECK(blocked.binding().alias);
  CHECK_EQ(blocked.binding().output.channel_block, 8);
  CHECK_EQ(blocked.output_shape().str(), "[2, 16, 2, 3]");
  CHECK_EQ(differs(blocked.forward(x), x, 0, 0), "");
  CHECK_EQ(differs(blocked.backward(dy)[0], dy, 0, 0), "");
}

TEST_CASE("add: sums its inputs and passes the gradient to both") {
  const auto backend = make_test_backend({});
  const std::vector<float> a = random_floats(192, 1), b = random_floats(192, 2), dy = random_floats(192, 3);
  std::vector<float> sum;
  for (size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  const Shape shape{2, 16, 3, 2};
  for (const bool in_place : {false, true}) {
    LayerHarness harness(*backend, make_add(spec_of("add")), std::array{shape, shape},
                         {.channel_block = 8, .in_place = in_place});
    CHECK_EQ(differs(harness.forward(std::array{a, b}), sum, 0, 0), "");
    const auto dx = harness.backward(dy);
    CHECK_EQ(differs(dx[0], dy, 0, 0), "");
    CHECK_EQ(differs(dx[1], dy, 0, 0), "");
  }
}

TEST_CASE("add: inputs of different layouts are joined in the first one's") {
  const auto backend = make_test_backend({});
  const TensorDesc blocked{.shape = Shape{1, 16, 2, 2}, .channel_block = 16}, plain{.shape = blocked.shape};
  const LayerPtr layer = make_add(spec_of("add"));
  const Shape samples[] = {blocked.shape.without_front(), blocked.shape.without_front()};
  layer->infer(samples);
  const TensorDesc inputs[] = {blocked, plain};
  BindContext context{*backend, Phase::training, true, inputs, false, {}};
  const Binding binding = layer->bind(context);
  CHECK((binding.output == blocked));
  const Memory& memory = backend->memory();
  std::vector<Buffer> arrays;
  const auto array = [&](const std::vector<float>& values) {
    const std::span<float> made = arrays.emplace_back(memory.allocate(256)).as<float>();
    memory.upload(made, values);
    return made;
  };
  const std::vector<float> none(64), a = random_floats(64, 1), b = random_floats(64, 2);
  const std::span<float> a_plain = array(a), b_plain = array(b), a_blocked = array(none), y = array(none),
                         y_plain = array(none), dx0 = array(none), dx1 = array(none), dy = array(none);
  const Buffer workspace = memory.allocate(binding.workspace_bytes);
  backend->reorder(plain, a_plain.data(), blocked, a_blocked.data());
  const void* x[] = {a_blocked.data(), b_plain.data()};
  void* dx[] = {dx0.data(), dx1.data()};
  Io io{.x = x, .y = y.data(), .workspace = workspace.data()};
  layer->forward(io);
  backend->reorder(blocked, y.data(), plain, y_plain.data());
  const std::vector<float> sum = memory.downloaded(y_plain);
  for (size_t i = 0; i < 64; ++i) CHECK_EQ(sum[i], a[i] + b[i]);
  backend->reorder(plain, b_plain.data(), blocked, dy.data());
  io.dy = dy.data();
  io.dx = dx;
  layer->backward(io);
  CHECK_EQ(differs(memory.downloaded(dx0), memory.downloaded(dy), 0, 0), "");
  CHECK_EQ(differs(memory.downloaded(dx1), b, 0, 0), "");
}

TEST_CASE("relu and tanh and sigmoid and dropout run in place with the same numbers") {
  const auto backend = make_test_backend({});
  const std::vector<float> x = random_floats(288, 1, -2, 2), dy = random_floats(288, 2);
  const Shape shape{2, 16, 3, 3};
  const auto both = [&](auto make) {
    LayerHarness apart(*backend, make(), shape), in_place(*backend, make(), shape, {.in_place = true});
    CHECK_EQ(differs(in_place.forward(x, {.key = 9}), apart.forward(x, {.key = 9}), 0, 0), "");
    // In place the output is where the input was: backward may only read that.
    CHECK_EQ(differs(in_place.backward(dy)[0], apart.backward(dy)[0], 0, 0), "");
  };
  both([] { return make_relu(spec_of("relu")); });
  both([] { return make_tanh(spec_of("tanh")); });
  both([] { return make_sigmoid(spec_of("sigmoid")); });
  both([] { return make_dropout(spec_of("dropout"), 1); });
}

TEST_CASE("dropout: layers and steps have masks of their own and inference is the identity") {
  const auto backend = make_test_backend({});
  const std::vector<float> x(256, 1);
  const auto run = [&](uint64_t layer, uint64_t key, Phase phase) {
    LayerHarness harness(*backend, make_dropout(spec_of("dropout"), layer), Shape{1, 256}, {.phase = phase});
    return harness.forward(x, {.key = key});
  };
  const std::vector<float> first = run(1, 1, Phase::training);
  CHECK(run(1, 1, Phase::training) == first);
  CHECK(run(2, 1, Phase::training) != first);
  CHECK(run(1, 2, Phase::training) != first);
  CHECK(run(1, 1, Phase::inference) == x);
}

TEST_CASE("dropout: p = 1 zeroes everything and draws nothing from PyTorch's stream") {
  const auto backend = make_test_backend({});
  LayerSpec spec = spec_of("dropout");
  spec.p = 1;
  spec.torch_stream = true;
  LayerHarness harness(*backend, make_dropout(spec, 1), Shape{1, 8});
  Generator generator(5), untouched(5);
  CHECK_EQ(differs(harness.forward(std::vector<float>(8, 3), {.key = 1, .torch = &generator}), std::vector<float>(8, 0),
                   0, 0),
           "");
  CHECK_EQ(generator.r32(), untouched.r32());
  spec.p = 0.5;
  LayerHarness without(*backend, make_dropout(spec, 1), Shape{1, 8});
  CHECK_THROWS_AS(without.forward(std::vector<float>(8, 3), {.key = 1}), Error);
}

TEST_CASE("max pooling: with the ReLU's mask fused the gradient is that of ReLU then pool") {
  const auto backend = make_test_backend({});
  const Shape shape{2, 16, 4, 6};
  const std::vector<float> x = random_floats(768, 1, -3, 1), dy = random_floats(192, 2);
  LayerSpec pool = spec_of("max_pool2d");
  pool.kernel = pool.stride = {2, 2};
  for (const int64_t block : {1, 8, 16}) {
    LayerHarness relu(*backend, make_relu(spec_of("relu")), shape, {.channel_block = block});
    LayerHarness apart(*backend, make_max_pool2d(pool), shape, {.channel_block = block});
    LayerHarness fused(*backend, make_max_pool2d(pool), shape, {.channel_block = block, .fuse_input_relu_mask = true});
    const std::vector<float> hidden = relu.forward(x);
    CHECK_EQ(differs(fused.forward(hidden), apart.forward(hidden), 0, 0), "");
    CHECK_EQ(differs(fused.backward(dy)[0], relu.backward(apart.backward(dy)[0])[0], 0, 0), "");
    CHECK(fused.binding().backward_reads_output);
  }
  CHECK_FALSE(make_avg_pool2d(pool)->fuse_input_relu_mask());
}

TEST_CASE("norm layers: weights start at one and biases at zero and nothing is drawn") {
  const auto backend = make_test_backend({});
  Generator generator(1), untouched(1);
  LayerHarness harness(*backend, make_batch_norm(spec_of("batch_norm")), Shape{4, 3});
  harness.initialize(generator);
  CHECK(harness.parameter("weight") == std::vector<float>(3, 1));
  CHECK(harness.parameter("bias") == std::vector<float>(3, 0));
  CHECK(harness.buffer("running_mean") == std::vector<float>(3, 0));
  CHECK(harness.buffer("running_var") == std::vector<float>(3, 1));
  CHECK(harness.buffer("num_batches_tracked") == std::vector<float>(1, 0));
  LayerHarness layer_norm(*backend, make_layer_norm(spec_of("layer_norm")), Shape{4, 2, 3});
  layer_norm.initialize(generator);
  CHECK(layer_norm.parameter("weight") == std::vector<float>(6, 1));
  CHECK_EQ(generator.r32(), untouched.r32());
}

TEST_CASE("batch norm: one value per channel is an error that names the layer") {
  const auto backend = make_test_backend({});
  LayerSpec spec = spec_of("batch_norm");
  spec.name = "bn1";
  CHECK_THROWS_WITH_AS(LayerHarness(*backend, make_batch_norm(spec), Shape{1, 3}),
                       doctest::Contains("batch_norm 'bn1': Expected more than 1 value per channel"), Error);
}

TEST_CASE("layers: inputs that do not fit are errors that name the layer and its place") {
  LayerSpec pool = spec_of("max_pool2d");
  pool.name = "pool1";
  pool.where = "net.yaml:4:7";
  pool.kernel = {9, 9};
  const Shape image{3, 4, 4}, other{3, 4, 5}, row{12};
  const auto infer = [](const LayerPtr& layer, std::vector<Shape> inputs) { layer->infer(inputs); };
  CHECK_THROWS_WITH_AS(infer(make_max_pool2d(pool), {image}),
                       "net.yaml:4:7: max_pool2d 'pool1': pooling: kernel 9 is larger than the input of 4 padded by 0",
                       Error);
  CHECK_THROWS_WITH_AS(infer(make_max_pool2d(pool), {row}),
                       "net.yaml:4:7: max_pool2d 'pool1': expected samples [C, H, W], found [12]", Error);
  CHECK_THROWS_AS(infer(make_add(spec_of("add")), {image, other}), Error);
  CHECK_THROWS_AS(infer(make_add(spec_of("add")), {image}), Error);
  LayerSpec norm = spec_of("layer_norm");
  norm.normalized_shape = {5, 4};
  CHECK_THROWS_WITH_AS(infer(make_layer_norm(norm), {image}),
                       "layer_norm: expected samples that end in [5, 4], found [3, 4, 4]", Error);
  LayerSpec groups = spec_of("group_norm");
  groups.groups = 2;
  CHECK_THROWS_WITH_AS(infer(make_group_norm(groups), {image}), "group_norm: 3 channels cannot be split into 2 groups",
                       Error);
  LayerSpec dropout = spec_of("dropout");
  dropout.p = 2;
  CHECK_THROWS_AS(make_dropout(dropout, 0), Error);
}

TEST_CASE("the windows of a dilated max_pool2d span their gaps") {
  LayerSpec spec = spec_of("max_pool2d");
  spec.kernel = {2, 3};
  spec.stride = {1, 2};
  spec.dilation = {3, 2};
  const std::vector<Shape> image{Shape{3, 6, 8}}, small{Shape{3, 3, 8}};
  CHECK_EQ(make_max_pool2d(spec)->infer(image).str(), Shape{3, 3, 2}.str());
  CHECK_THROWS_WITH_AS(make_max_pool2d(spec)->infer(small),
                       "max_pool2d: pooling: kernel 2 with dilation 3 spans 4: larger than the input of 3 padded by 0",
                       Error);
  spec.padding = {1, 0};
  CHECK_THROWS_WITH_AS(
      make_max_pool2d(spec)->infer(std::vector<Shape>{Shape{3, 2, 8}}),
      "max_pool2d: pooling: dilation 3: the pixels of window 0 all lie in the padding: expected one in "
      "the input of 2",
      Error);
}

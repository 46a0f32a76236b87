// The GPU's convolution plans beside the CPU's, and by themselves: formats, frozen parts, algorithms, bits.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"
#include "sim/conv2d_runner.h"
#include "support/golden.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Conv2dSpec spec(const Shape& input, int64_t out, int64_t kernel) {
  return {.input = {.shape = input}, .out_channels = out, .kernel = {kernel, kernel}};
}

std::vector<Conv2dSpec> table() {
  std::vector<Conv2dSpec> all;
  const auto add = [&](Conv2dSpec s, const auto& change) {
    change(s);
    all.push_back(s);
  };
  add(spec({2, 1, 9, 8}, 5, 3), [](Conv2dSpec&) {});
  add(spec({1, 3, 8, 7}, 16, 3), [](Conv2dSpec& s) { s.padding = {1, 1}, s.activation = Activation::relu; });
  add(spec({3, 16, 7, 5}, 8, 1), [](Conv2dSpec& s) { s.input.channel_block = 16; });
  add(spec({2, 16, 9, 9}, 6, 3), [](Conv2dSpec& s) { s.input.channel_block = 8, s.stride = {2, 2}, s.bias = false; });
  add(spec({2, 6, 11, 7}, 9, 3), [](Conv2dSpec& s) { s.groups = 3, s.padding = {1, 2}, s.dilation = {2, 1}; });
  add(spec({2, 8, 6, 6}, 8, 5), [](Conv2dSpec& s) {
    s.groups = 8, s.padding = {2, 2}, s.input.channel_block = 8, s.activation = Activation::relu;
  });
  add(spec({1, 4, 5, 12}, 3, 2), [](Conv2dSpec& s) {
    s.kernel = {2, 5}, s.stride = {3, 2}, s.dilation = {1, 2}, s.activation = Activation::relu, s.bias = false;
  });
  add(spec({4, 7, 1, 1}, 3, 1), [](Conv2dSpec& s) { s.bias = true; });
  return all;
}

// Both sum in fp32, in orders of their own: rounding grows with the square root of the number of products in a sum.
void check_alike(const Conv2dSpec& spec, const Conv2dResult& gpu, const Conv2dResult& cpu, double unit) {
  const size_t taps = static_cast<size_t>(spec.kernel[0] * spec.kernel[1]),
               in = static_cast<size_t>(spec.input.shape[1] / spec.groups),
               out = static_cast<size_t>(spec.out_channels / spec.groups);
  const size_t pixels = cpu.y.size() / static_cast<size_t>(spec.out_channels);
  const auto scaled = [&](size_t products) { return unit * std::sqrt(static_cast<double>(products)); };
  CHECK_EQ(differs(gpu.y, cpu.y, unit, scaled(taps * in)), "");
  CHECK_EQ(differs(gpu.dx, cpu.dx, unit, scaled(taps * out)), "");
  CHECK_EQ(differs(gpu.dw, cpu.dw, unit, scaled(pixels)), "");
  CHECK_EQ(differs(gpu.db, cpu.db, 1e-6, 1e-6), "");
}

Conv2dResult run_gpu(const Conv2dSpec& spec, const Conv2dRun& run = {}, const cuda::ConvolutionOptions& options = {},
                     uint64_t seed = 1) {
  GpuArrays gpu(seed);
  cuda::Dnn dnn(gpu.context(), options);
  const auto plan = cuda::make_conv2d(gpu.context(), dnn, spec);
  return run_on_gpu(gpu, *plan, spec, run);
}

Conv2dResult run_cpu(const Conv2dSpec& spec, const Conv2dRun& run = {}) {
  return run_on_cpu(*make_cpu_conv2d(spec, {.winograd = false}), spec, run);
}

}  // namespace

TEST_CASE("convolutions on the GPU are those of the CPU in fp32") {
  for (const Conv2dSpec& s : table()) {
    CAPTURE(s.input.shape.str());
    for (const bool accumulate : {false, true})
      check_alike(s, run_gpu(s, {.accumulate = accumulate}), run_cpu(s, {.accumulate = accumulate}), 1e-6);
  }
}

// Inputs and weights are the same rounded numbers for both; a result is rounded once more than its fp32 sum (y, dx), or
// is a 16-bit sum (dw). So they may differ by one unit in the last place, of the result or of a term it cancels.
TEST_CASE("convolutions on the GPU are those of the CPU in 16 bits") {
  for (const DType type : {DType::bf16, DType::f16}) {
    for (Conv2dSpec s : table()) {
      CAPTURE(name(type));
      CAPTURE(s.input.shape.str());
      s.input.dtype = type;
      check_alike(s, run_gpu(s, {.accumulate = true}), run_cpu(s, {.accumulate = true}),
                  type == DType::bf16 ? 0x1p-8 : 0x1p-11);
    }
  }
}

TEST_CASE("an output of a convolution on the GPU has its channels last") {
  GpuArrays gpu;
  cuda::Dnn dnn(gpu.context());
  const auto plan = cuda::make_conv2d(gpu.context(), dnn, spec({2, 3, 8, 8}, 5, 3));
  CHECK(plan->output() == TensorDesc{.shape = Shape{2, 5, 6, 6}, .channel_block = 5, .dtype = DType::f32});
}

TEST_CASE("weights of a convolution on the GPU are stored as cuDNN reads them or as PyTorch does") {
  const Conv2dSpec free = spec({2, 3, 8, 8}, 4, 3);
  const Conv2dResult expected = run_cpu(free);
  Conv2dSpec canonical = free;
  canonical.stored = true;
  for (const DType type : {DType::f32, DType::bf16}) {
    canonical.input.dtype = type;
    Conv2dSpec own = free;
    own.input.dtype = type;
    const Conv2dResult a = run_gpu(own), b = run_gpu(canonical);
    CHECK_EQ(differs(a.y, b.y, 0, 0), "");
    CHECK_EQ(differs(a.dx, b.dx, 0, 0), "");
    CHECK_EQ(differs(a.dw, b.dw, 0, 0), "");
  }
  GpuArrays gpu;
  cuda::Dnn dnn(gpu.context());
  const auto trained = cuda::make_conv2d(gpu.context(), dnn, free);
  Conv2dSpec evaluated = free;
  evaluated.input.shape = Shape{5, 3, 4, 4};
  evaluated.phase = Phase::inference;
  evaluated.stored = true;
  evaluated.weight_format = trained->weight_format();
  REQUIRE(evaluated.weight_format != nullptr);
  CHECK(cuda::make_conv2d(gpu.context(), dnn, evaluated)->weight_format() == trained->weight_format());
  evaluated.weight_format = make_cpu_conv2d(spec({2, 32, 8, 8}, 32, 3), {})->weight_format();
  REQUIRE(evaluated.weight_format != nullptr);
  CHECK_THROWS_AS(cuda::make_conv2d(gpu.context(), dnn, evaluated), Error);
  CHECK(cuda::make_conv2d(gpu.context(), dnn, spec({2, 3, 8, 8}, 4, 1))->weight_format() == nullptr);
}

TEST_CASE("frozen parts of a convolution on the GPU cost nothing and stay untouched") {
  Conv2dSpec s = spec({2, 3, 8, 8}, 4, 3);
  const Conv2dResult all = run_gpu(s);
  CHECK_EQ(differs(run_gpu(s, {.bias_gradient = false}).dw, all.dw, 0, 0), "");
  s.weight_gradient = false;
  s.input_gradient = false;
  const Conv2dResult frozen = run_gpu(s, {.input_gradient = false, .weight_gradient = false});
  CHECK_EQ(differs(frozen.db, all.db, 0, 0), "");
  CHECK_EQ(sim::calls()["cudnnConvolutionBackwardFilter"], 0);
  CHECK_EQ(sim::calls()["cudnnConvolutionBackwardData"], 0);
  s.phase = Phase::inference;
  CHECK_EQ(differs(run_gpu(s, {.backward = false}).y, all.y, 0, 0), "");
}

TEST_CASE("a convolution on the GPU has the same bits on every run") {
  const Conv2dSpec s = spec({4, 6, 17, 13}, 8, 3);
  const auto gradients = [&](const cuda::ConvolutionOptions& options, uint64_t seed) {
    Conv2dResult r = run_gpu(s, {}, options, seed);
    r.dw.insert(r.dw.end(), r.dx.begin(), r.dx.end());
    return r.dw;
  };
  CHECK(gradients({}, 1) == gradients({}, 2));
  CHECK(gradients({.measure = true}, 1) == gradients({.measure = true}, 2));
  CHECK(gradients({.deterministic = false}, 1) != gradients({.deterministic = false}, 2));
}

TEST_CASE("algorithms of a convolution are measured on request and keep to the workspace") {
  const Conv2dSpec s = spec({2, 6, 9, 9}, 8, 3);
  CHECK(run_gpu(s).workspace_bytes > 0);
  CHECK(sim::calls()["cudnnFindConvolutionForwardAlgorithmEx"] == 0);
  run_gpu(s, {}, {.measure = true, .workspace_limit = 1 << 20});
  CHECK(sim::calls()["cudnnFindConvolutionForwardAlgorithmEx"] == 1);
  CHECK(sim::calls()["cudnnGetConvolutionForwardAlgorithm_v7"] == 0);
  CHECK_THROWS_WITH_AS(run_gpu(s, {}, {.workspace_limit = 0}),
                       doctest::Contains("no deterministic algorithm of 0 bytes of workspace"), Error);
}

TEST_CASE("fp32 convolutions round nothing unless TF32 is wanted") {
  const Conv2dSpec s = spec({2, 6, 9, 9}, 8, 3);
  const Conv2dResult expected = run_cpu(s), rounded = run_gpu(s, {}, {.tf32 = true});
  CHECK_EQ(differs(run_gpu(s).y, expected.y, 0, 1e-5), "");
  CHECK_NE(differs(rounded.y, expected.y, 0, 1e-5), "");
  CHECK_EQ(differs(rounded.y, expected.y, 0, 0.02), "");
}

TEST_CASE("every failing cuDNN call ends a convolution with a message") {
  Conv2dSpec s = spec({2, 3, 6, 6}, 4, 3);
  s.activation = Activation::relu;
  run_gpu(s);
  int functions = 0;
  for (const auto& [function, count] : sim::calls()) {
    if (!function.starts_with("cudnn")) continue;
    CAPTURE(function);
    GpuArrays gpu;
    sim::fail_call(function, count - 1);
    cuda::Dnn dnn(gpu.context());
    const auto work = [&] { run_on_gpu(gpu, *cuda::make_conv2d(gpu.context(), dnn, s), s, {}); };
    CHECK_THROWS_WITH_AS(work(), doctest::Contains("failed: CUDNN_STATUS_"), Error);
    ++functions;
  }
  CHECK(functions >= 20);
}

TEST_CASE("convolutions on the GPU refuse what can't be planned") {
  GpuArrays gpu;
  cuda::Dnn dnn(gpu.context());
  Conv2dSpec s = spec({2, 6, 9, 9}, 8, 3);
  s.groups = 4;
  CHECK_THROWS_AS(cuda::make_conv2d(gpu.context(), dnn, s), Error);
  s = spec({0, 6, 9, 9}, 8, 3);
  CHECK_THROWS_WITH_AS(cuda::make_conv2d(gpu.context(), dnn, s), doctest::Contains("[0, 6, 9, 9]"), Error);
}

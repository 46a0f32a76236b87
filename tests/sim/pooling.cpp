// The GPU's pooling plans beside the CPU's: the same numbers in every layout and type, as both add in the same order
// and round after each addition. Only the sign of a zero and the sign of a NaN may differ.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/cpu_plans.h"
#include "backend/cuda/cuda_plans.h"
#include "core/error.h"
#include "sim/gpu_arrays.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using test::Bytes;
using test::canonical;
using test::GpuArrays;
using test::stored;
using Kind = Pool2dSpec::Kind;

namespace {

std::vector<float> numbers(const TensorDesc& desc, const Bytes& bytes) {
  std::vector<float> values = canonical(desc, bytes);
  for (float& value : values)
    if (std::isnan(value)) value = 12345;  // one NaN is as good as another
  return values;
}

// Equal maxima often, and now and then a NaN.
std::vector<float> inputs(size_t count, bool nan) {
  std::vector<float> x = oracle::random_floats(count, 1, -4, 4);
  for (size_t i = 0; i < count; ++i) {
    x[i] = std::round(x[i]);
    if (nan && i % 41 == 7) x[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return x;
}

void check_alike(const Pool2dSpec& spec) {
  CAPTURE(spec.input.shape.str());
  CAPTURE(spec.input.channel_block);
  CAPTURE(name(spec.input.dtype));
  CAPTURE(static_cast<int>(spec.kind));
  GpuArrays gpu;
  const auto expected = make_cpu_pool2d(spec);
  const auto plan = cuda::make_pool2d(gpu.context(), spec);
  const TensorDesc in = spec.input, out = plan->output();
  REQUIRE(out == expected->output());
  const Bytes x = stored(in, inputs(static_cast<size_t>(in.shape.numel()), !spec.mask_relu)),
              dy = stored(out, oracle::random_floats(static_cast<size_t>(out.shape.numel()), 2));
  Bytes y(out.bytes()), dx(in.bytes()), saved(expected->saved_bytes());
  expected->forward(x.data(), y.data(), saved.data());
  void *from = gpu.put(x), *to = gpu.make(out.bytes()), *gradient = gpu.put(dy), *back = gpu.make(in.bytes()),
       *kept = gpu.make(plan->saved_bytes());
  plan->forward(from, to, kept);
  CHECK_EQ(test::differs(numbers(out, gpu.get_bytes(to, out.bytes())), numbers(out, y), 0, 0), "");
  if (spec.phase == Phase::inference) {
    CHECK_EQ(kept, nullptr);
    return;
  }
  expected->backward(dy.data(), y.data(), dx.data(), saved.data());
  plan->backward(gradient, to, back, kept);
  CHECK_EQ(test::differs(numbers(in, gpu.get_bytes(back, in.bytes())), numbers(in, dx), 0, 0), "");
}

const std::vector<Pool2dSpec> kWindows = {
    {},
    {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
    {.kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 0}, .ceil_mode = true},
    {.kernel = {2, 2}, .stride = {3, 3}},
    {.kernel = {5, 5}, .stride = {2, 1}, .padding = {2, 2}, .ceil_mode = true},
    {.adaptive = true, .out_size = {1, 1}},
    {.adaptive = true, .out_size = {3, 5}},
};

const std::vector<Pool2dSpec> kDilated = {
    {.stride = {1, 1}, .dilation = {2, 2}},
    {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {3, 2}},
    {.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 1}, .dilation = {2, 4}, .ceil_mode = true},
    {.kernel = {2, 3}, .stride = {4, 1}, .dilation = {1, 3}, .ceil_mode = true},
};

}  // namespace

TEST_CASE("pooling on the GPU has the numbers of the CPU in every layout and type") {
  for (const Kind kind : {Kind::max, Kind::average, Kind::average_exclude_padding}) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      for (const Shape& shape : {Shape{2, 16, 7, 9}, Shape{1, 3, 8, 8}}) {
        for (const int64_t block : {int64_t{1}, int64_t{8}, shape[1]}) {
          if (shape[1] % block != 0) continue;
          for (Pool2dSpec spec : kWindows) {
            spec.kind = kind;
            spec.input = {.shape = shape, .channel_block = block, .dtype = type};
            check_alike(spec);
          }
        }
      }
    }
  }
}

TEST_CASE("max pooling with dilation on the GPU has the numbers of the CPU in every layout and type") {
  for (const Pool2dSpec& window : kDilated) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      for (const int64_t block : {1, 8}) {
        for (const bool mask : {false, true}) {
          Pool2dSpec spec = window;
          spec.input = {.shape = Shape{2, 16, 8, 9}, .channel_block = block, .dtype = type};
          spec.mask_relu = mask;
          check_alike(spec);
        }
      }
    }
  }
  // More pixels than a byte counts, though no window spans as many rows.
  check_alike({.input = {.shape = Shape{1, 2, 40, 60}}, .kernel = {17, 17}, .stride = {3, 2}, .dilation = {2, 3}});
}

TEST_CASE("max pooling on the GPU applies the mask of the ReLU before it") {
  for (const DType type : {DType::f32, DType::bf16})
    for (Pool2dSpec spec : kWindows) {
      spec.mask_relu = true;
      spec.input = {.shape = Shape{2, 8, 7, 9}, .channel_block = 8, .dtype = type};
      check_alike(spec);
    }
}

TEST_CASE("max pooling on the GPU keeps positions in windows of more than 256 pixels") {
  check_alike({.input = {.shape = Shape{1, 2, 20, 21}}, .adaptive = true, .out_size = {1, 1}});
  check_alike({.input = {.shape = Shape{1, 2, 40, 20}}, .kernel = {17, 17}, .stride = {3, 2}, .padding = {8, 8}});
}

TEST_CASE("pooling on the GPU saves nothing in inference") {
  check_alike({.input = {.shape = Shape{2, 3, 6, 6}}, .phase = Phase::inference});
}

TEST_CASE("pooling on the GPU refuses what it can't plan") {
  GpuArrays gpu;
  CHECK_THROWS_AS(cuda::make_pool2d(gpu.context(), {.input = {.shape = Shape{2, 3}}}), Error);
  CHECK_THROWS_AS(cuda::make_pool2d(gpu.context(), {.input = {.shape = Shape{2, 3, 4, 4}, .channel_block = 2}}), Error);
  CHECK_THROWS_AS(cuda::make_pool2d(gpu.context(),
                                    {.input = {.shape = Shape{2, 4, 4, 4}}, .kind = Kind::average, .mask_relu = true}),
                  Error);
}

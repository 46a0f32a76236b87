// The GPU's elementwise plans beside the CPU's, type by type.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>

#include "backend/backend.h"
#include "backend/cuda/pointwise.h"
#include "core/error.h"
#include "core/half.h"
#include "sim/gpu_arrays.h"

using namespace lockstep;
using test::Bytes;
using test::GpuArrays;

namespace {

constexpr size_t n = 777;

// Numbers of a type, with infinities, zeros of both signs and a NaN.
Bytes numbers(DType type, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 3);
  Bytes bytes(n * size_of(type));
  for (size_t i = 0; i < n; ++i) {
    float value = normal(engine);
    if (i % 97 == 5) value = std::numeric_limits<float>::infinity();
    if (i % 89 == 3) value = i % 2 == 0 ? 0.0F : -0.0F;
    if (i == 500) value = std::numeric_limits<float>::quiet_NaN();
    std::byte* to = bytes.data() + i * size_of(type);
    Bf16 bf16{};
    F16 f16{};
    narrow(value, bf16);
    narrow(value, f16);
    if (type == DType::f32) std::memcpy(to, &value, 4);
    if (type == DType::bf16) std::memcpy(to, &bf16, 2);
    if (type == DType::f16) std::memcpy(to, &f16, 2);
  }
  return bytes;
}

// Bit for bit, but one NaN is as good as another: its sign is the compiler's choice.
bool same_numbers(DType type, const Bytes& a, const Bytes& b) {
  if (type != DType::f32 || a.size() != b.size()) return a == b;
  for (size_t at = 0; at < a.size(); at += sizeof(float)) {
    float x = 0, y = 0;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    if (std::memcmp(&x, &y, sizeof x) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};

}  // namespace

TEST_CASE("stateless operations on the GPU have the bits of the CPU") {
  const auto cpu = make_cpu_backend({});
  for (const DType type : types) {
    CAPTURE(name(type));
    GpuArrays gpu;
    const Bytes a = numbers(type, 1), b = numbers(type, 2);
    Bytes sum(a.size()), masked(a.size());
    cpu->add(type, n, a.data(), b.data(), sum.data());
    cpu->relu_mask(type, n, a.data(), b.data(), masked.data());
    void *x = gpu.put(a), *y = gpu.put(b), *to = gpu.make(a.size());
    cuda_add(gpu.context(), type, n, x, y, to);
    CHECK(gpu.get_bytes(to, a.size()) == sum);
    cuda_relu_mask(gpu.context(), type, n, x, y, to);
    CHECK(gpu.get_bytes(to, a.size()) == masked);
    cuda_copy(gpu.context(), type, n, x, to);
    CHECK(gpu.get_bytes(to, a.size()) == a);
  }
  GpuArrays gpu;
  void* filled = gpu.make(n * 4);
  cuda_fill(gpu.context(), n, 1.5F, static_cast<float*>(filled));
  Bytes expected(n * 4);
  cpu->fill(n, 1.5F, reinterpret_cast<float*>(expected.data()));
  CHECK(gpu.get_bytes(filled, n * 4) == expected);
}

TEST_CASE("conversions on the GPU have the bits of the CPU") {
  const auto cpu = make_cpu_backend({});
  const auto desc = [](DType type) { return TensorDesc{Shape{1, static_cast<int64_t>(n)}, 1, type}; };
  for (const DType type : {DType::bf16, DType::f16}) {
    CAPTURE(name(type));
    GpuArrays gpu;
    const Bytes wide = numbers(DType::f32, 3), narrowed = numbers(type, 4);
    Bytes to_narrow(n * 2), to_wide(n * 4);
    cpu->reorder(desc(DType::f32), wide.data(), desc(type), to_narrow.data());
    cpu->reorder(desc(type), narrowed.data(), desc(DType::f32), to_wide.data());
    void *small = gpu.make(n * 2), *large = gpu.make(n * 4);
    cuda_convert(gpu.context(), n, DType::f32, gpu.put(wide), type, small);
    cuda_convert(gpu.context(), n, type, gpu.put(narrowed), DType::f32, large);
    CHECK(gpu.get_bytes(small, n * 2) == to_narrow);
    CHECK(gpu.get_bytes(large, n * 4) == to_wide);
  }
  GpuArrays gpu;
  CHECK_THROWS_AS(cuda_convert(gpu.context(), 1, DType::bf16, nullptr, DType::f16, nullptr), Error);
}

TEST_CASE("activations on the GPU have the bits of the CPU") {
  const auto cpu = make_cpu_backend({});
  for (const Activation kind : {Activation::relu, Activation::leaky_relu, Activation::gelu, Activation::gelu_tanh,
                                Activation::tanh, Activation::sigmoid}) {
    for (const DType type : types) {
      if (type != DType::f32 && kind != Activation::relu) continue;
      CAPTURE(static_cast<int>(kind));
      CAPTURE(name(type));
      GpuArrays gpu;
      const ActivationSpec spec{.count = n, .dtype = type, .kind = kind};
      const auto expected = cpu->plan_activation(spec);
      const auto plan = make_cuda_activation(gpu.context(), spec);
      const Bytes x = numbers(type, 5), dy = numbers(type, 6);
      Bytes y(x.size()), dx(x.size());
      expected->forward(x.data(), y.data());
      expected->backward(x.data(), y.data(), dy.data(), dx.data());
      void *in = gpu.put(x), *out = gpu.make(x.size()), *gradient = gpu.put(dy);
      plan->forward(in, out);
      CHECK(gpu.get_bytes(out, x.size()) == y);
      plan->backward(in, out, gradient, gradient);
      CHECK(same_numbers(type, gpu.get_bytes(gradient, x.size()), dx));
    }
  }
  GpuArrays gpu;
  CHECK_THROWS_AS(make_cuda_activation(gpu.context(), {.count = 1, .kind = Activation::none}), Error);
  CHECK_THROWS_AS(make_cuda_activation(gpu.context(), {.count = 1, .dtype = DType::bf16, .kind = Activation::tanh}),
                  Error);
}

TEST_CASE("dropout on the GPU drops what the CPU drops") {
  const auto cpu = make_cpu_backend({});
  for (const DType type : types) {
    for (const double p : {0.0, 0.3, 0.5, 1.0}) {
      CAPTURE(name(type));
      CAPTURE(p);
      GpuArrays gpu;
      const DropoutSpec spec{.count = n, .dtype = type, .p = p};
      const auto expected = cpu->plan_dropout(spec);
      const auto plan = make_cuda_dropout(gpu.context(), spec);
      REQUIRE(plan->saved_bytes() == expected->saved_bytes());
      const Bytes x = numbers(type, 7);
      Bytes y(x.size()), dx(x.size()), keep(n);
      expected->forward(x.data(), y.data(), {42}, keep.data());
      expected->backward(x.data(), dx.data(), keep.data());
      void *in = gpu.put(x), *out = gpu.make(x.size()), *saved = gpu.make(n);
      plan->forward(in, out, {42}, saved);
      CHECK(gpu.get_bytes(out, x.size()) == y);
      CHECK(gpu.get_bytes(saved, n) == keep);
      plan->backward(in, out, saved);
      CHECK(gpu.get_bytes(out, x.size()) == dx);
      plan->forward_with_mask(in, out, static_cast<const uint8_t*>(gpu.put(keep)), saved);
      CHECK(gpu.get_bytes(out, x.size()) == y);
    }
  }
}

TEST_CASE("softmax on the GPU has the bits of the CPU") {
  const auto cpu = make_cpu_backend({});
  const SoftmaxSpec specs[] = {
      {.outer = 111, .axis = 7}, {.outer = 7, .axis = 37, .inner = 3}, {.outer = 1, .axis = 777}};
  for (const SoftmaxSpec& spec : specs) {
    CAPTURE(spec.axis);
    GpuArrays gpu;
    const auto expected = cpu->plan_softmax(spec);
    const auto plan = make_cuda_softmax(gpu.context(), spec);
    std::vector<float> x(n), y(n), dx(n);
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i * 37 % 101) / 7 - 5;
    expected->forward(x.data(), y.data());
    expected->backward(y.data(), x.data(), dx.data());
    const auto bytes_of = [](const std::vector<float>& values) {
      const auto bytes = std::as_bytes(std::span(values));
      return Bytes(bytes.begin(), bytes.end());
    };
    const auto* in = static_cast<const float*>(gpu.put(bytes_of(x)));
    auto* out = static_cast<float*>(gpu.make(n * sizeof(float)));
    auto* gradient = static_cast<float*>(gpu.make(n * sizeof(float)));
    plan->forward(in, out);
    CHECK(gpu.get_bytes(out, n * sizeof(float)) == bytes_of(y));
    plan->backward(out, in, gradient);
    CHECK(gpu.get_bytes(gradient, n * sizeof(float)) == bytes_of(dx));
  }
  GpuArrays gpu;
  CHECK_THROWS_AS(make_cuda_softmax(gpu.context(), {.outer = 1, .axis = 0}), Error);
}

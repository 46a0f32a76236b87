// The GPU's optimizer kernels beside the CPU's: equal bits for updates, equal sums within rounding.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "backend/cpu/optimizer_ops.h"
#include "backend/cuda/optimizer_ops.h"
#include "sim/device_arrays.h"
#include "sim/runtime/control.h"
#include "support/golden.h"

using namespace lockstep;
using test::differs_bits;

namespace {

constexpr size_t n = 1003;

// Magnitudes from denormal to 1e30, both signs, some zeros.
std::vector<float> wild(uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(-40, 30);
  std::vector<float> x(n);
  for (float& value : x) value = engine() % 16 == 0 ? 0.0f : std::ldexp(mantissa(engine), exponent(engine));
  return x;
}

std::vector<float> absolute(std::vector<float> x) {
  for (float& value : x) value = std::abs(value);
  return x;
}

// Parameters, gradients and three states.
using Arrays = std::array<std::vector<float>, 5>;
using Work = std::function<void(const OptimizerOps&, float* p, float* g, float* a, float* b, float* c)>;

Arrays start() { return {wild(1), wild(5), absolute(wild(2)), absolute(wild(3)), absolute(wild(4))}; }

Arrays on_cpu(const Work& work) {
  Arrays arrays = start();
  work(CpuOptimizerOps(), arrays[0].data(), arrays[1].data(), arrays[2].data(), arrays[3].data(), arrays[4].data());
  return arrays;
}

Arrays on_gpu(const Work& work) {
  sim::reset({});
  cuda::Context context(0);
  const CudaOptimizerOps ops(context);
  Arrays arrays = start();
  std::vector<Buffer> memory;
  std::vector<test::Upload> uploads;
  uploads.reserve(arrays.size());
  for (const auto& array : arrays) {
    memory.push_back(context.allocate(n * sizeof(float)));
    uploads.emplace_back(context, context.compute(), array, memory.back().as<float>().data());
  }
  const auto at = [&](size_t i) { return memory[i].as<float>().data(); };
  work(ops, at(0), at(1), at(2), at(3), at(4));
  for (size_t i = 0; i < arrays.size(); ++i) arrays[i] = test::download(context, context.compute(), at(i), n);
  return arrays;
}

void check_same_bits(const Work& work) {
  const Arrays expected = on_cpu(work), found = on_gpu(work), before = start();
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK_EQ(differs_bits(found[i], expected[i]), "");
  }
  CHECK(expected != before);  // or nothing was compared
}

}  // namespace

TEST_CASE("sgd on the GPU has the bits of the CPU") {
  for (const double momentum : {0.0, 0.9})
    for (const double decay : {0.0, 0.01})
      for (const bool nesterov : {false, true})
        check_same_bits([&](const OptimizerOps& ops, float* p, float* g, float* a, float*, float*) {
          for (int t = 1; t <= 3; ++t)
            ops.sgd(
                {.lr = 0.1, .momentum = momentum, .weight_decay = decay, .nesterov = nesterov, .first_step = t == 1}, n,
                p, g, a);
        });
}

TEST_CASE("adam on the GPU has the bits of the CPU") {
  for (const double beta1 : {0.9, 0.3})
    for (const double decay : {0.0, 0.01})
      for (const bool decoupled : {false, true})
        for (const bool amsgrad : {false, true})
          check_same_bits([&](const OptimizerOps& ops, float* p, float* g, float* a, float* b, float* c) {
            for (int64_t t = 1; t <= 3; ++t)
              ops.adam({.beta1 = beta1, .weight_decay = decay, .decoupled = decoupled, .amsgrad = amsgrad, .t = t}, n,
                       p, g, a, b, c);
          });
}

TEST_CASE("the other optimizers on the GPU have the bits of the CPU") {
  for (const double decay : {0.0, 0.01}) {
    check_same_bits([&](const OptimizerOps& ops, float* p, float* g, float* a, float* b, float*) {
      ops.adadelta({.weight_decay = decay}, n, p, g, a, b);
    });
    check_same_bits([&](const OptimizerOps& ops, float* p, float* g, float* a, float*, float*) {
      ops.adagrad({.weight_decay = decay, .t = 3}, n, p, g, a);
    });
    for (const bool centered : {false, true})
      for (const double momentum : {0.0, 0.9})
        check_same_bits([&](const OptimizerOps& ops, float* p, float* g, float* a, float* b, float* c) {
          ops.rmsprop({.weight_decay = decay, .momentum = momentum, .centered = centered}, n, p, g, a, b, c);
        });
  }
  for (const double beta1 : {0.9, 0.3})
    check_same_bits([&](const OptimizerOps& ops, float* p, float* g, float* a, float* b, float* c) {
      ops.lamb_direction({.beta1 = beta1, .weight_decay = 0.01, .t = 2}, n, p, g, a, b, c);
    });
}

TEST_CASE("small operations on the GPU have the bits of the CPU") {
  check_same_bits([](const OptimizerOps& ops, float* p, float* g, float* a, float* b, float* c) {
    ops.scale(n, p, 0.3f);
    ops.add(n, p, g);
    ops.clamp(n, a, 1.5f);
    ops.fill(n, b, 7);
    ops.lerp(n, c, p, 0.25f);
  });
}

TEST_CASE("sums on the GPU are those of a plain loop") {
  sim::reset({});
  cuda::Context context(0);
  const CudaOptimizerOps ops(context);
  const Buffer memory = context.allocate(200'000 * sizeof(float));
  float* x = memory.as<float>().data();
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{255}, size_t{70'001}, size_t{200'000}}) {
    CAPTURE(count);
    std::vector<float> values(count);
    for (float& value : values) value = normal(engine);
    const test::Upload upload(context, context.compute(), values, x);
    double squares = 0, magnitudes = 0, cubes = 0;
    float largest = 0;
    for (const float value : values) {
      squares += static_cast<double>(value) * value;
      magnitudes += std::abs(value);
      cubes += std::pow(std::abs(static_cast<double>(value)), 3);
      largest = std::max(largest, std::abs(value));
    }
    CHECK(ops.sum_of_squares(count, x) == doctest::Approx(squares).epsilon(1e-12));
    CHECK(ops.sum_of_abs(count, x) == doctest::Approx(magnitudes).epsilon(1e-12));
    CHECK(ops.sum_of_powers(count, x, 3) == doctest::Approx(cubes).epsilon(1e-12));
    CHECK(ops.max_abs(count, x) == largest);
    CHECK(ops.sum_of_squares(count, x) == ops.sum_of_squares(count, x));
  }
  const std::vector<float> bad = {1, std::numeric_limits<float>::quiet_NaN(), 3};
  const test::Upload upload(context, context.compute(), bad, x);
  CHECK(std::isnan(ops.max_abs(3, x)));
  CHECK(std::isnan(ops.sum_of_squares(3, x)));
}

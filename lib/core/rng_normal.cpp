// Normals of core/rng.h. The float block path repeats, operation by operation, the polynomials for log, sin and cos
// of PyTorch's AVX2 kernel, because the C library's functions differ from it in the last bit of two values in five.
#include <bit>
#include <cmath>
#include <numbers>

#include "core/rng.h"

namespace lockstep {

static constexpr size_t kBlock = 16;

// Natural logarithm of x in (0, 1], Cephes form: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), polynomial in m - 1.
static float log_polynomial(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  float m = std::bit_cast<float>((bits & 0x007fffffU) | 0x3f000000U);  // [0.5, 1)
  if (m < 0.707106781186547524f) {
    e -= 1.0f;
    m = (m - 1.0f) + m;
  } else {
    m = m - 1.0f;
  }
  const float z = m * m;
  float y = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                        2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    y = std::fma(y, m, c);
  }
  y = y * m;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, m + y);
}

struct SinCos {
  float sin, cos;
};

// Sine and cosine of x in [0, 2 pi], Cephes form: x reduced to its octant in three steps, one polynomial for each.
static SinCos sincos_polynomial(float x) {
  int j = static_cast<int>(x * 1.27323954473516f);
  j = (j + 1) & ~1;
  const auto octant = static_cast<float>(j);
  x = std::fma(octant, -0.78515625f, x);
  x = std::fma(octant, -2.4187564849853515625e-4f, x);
  x = std::fma(octant, -3.77489497744594108e-8f, x);
  const float z = x * x;

  float c = 2.443315711809948e-5f;
  c = std::fma(c, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f);
  c = c * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1.0f;

  float s = -1.9515295891e-4f;
  s = std::fma(s, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f);
  s = s * z;
  s = std::fma(s, x, x);

  const bool swapped = (j & 2) != 0;
  const float sine = swapped ? c : s;
  const float cosine = swapped ? s : c;
  return {(j & 4) != 0 ? -sine : sine, (~(j - 2) & 4) != 0 ? -cosine : cosine};
}

// Sixteen uniforms become sixteen normals: entries j and j + 8 are radius and angle of one pair.
static void transform_block(float* block, float mean, float std) {
  for (size_t j = 0; j < kBlock / 2; ++j) {
    const float radius = std::sqrt(-2.0f * log_polynomial(1.0f - block[j]));
    const SinCos angle = sincos_polynomial(6.2831855f * block[j + 8]);
    block[j] = std::fma(radius * angle.cos, std, mean);
    block[j + 8] = std::fma(radius * angle.sin, std, mean);
  }
}

static void transform_block(double* block, double mean, double std) {
  for (size_t j = 0; j < kBlock / 2; ++j) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - block[j]));
    const double theta = 2.0 * std::numbers::pi * block[j + 8];
    block[j] = radius * std::cos(theta) * std + mean;
    block[j + 8] = radius * std::sin(theta) * std + mean;
  }
}

template <class T, class Uniform>
static void fill_normal(std::span<T> out, T mean, T std, Uniform uniform) {
  for (T& value : out) value = uniform();
  const size_t n = out.size();
  for (size_t i = 0; i + kBlock <= n; i += kBlock) transform_block(out.data() + i, mean, std);
  if (n % kBlock != 0) {
    const std::span<T> tail = out.last(kBlock);
    for (T& value : tail) value = uniform();
    transform_block(tail.data(), mean, std);
  }
}

double Generator::normal_double() {
  if (cached_normal_) {
    const double value = *cached_normal_;
    cached_normal_.reset();
    return value;
  }
  const double u1 = uniform_double();
  const double u2 = uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::numbers::pi * u1;
  cached_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

void Generator::normal(std::span<float> out, double mean, double std) {
  if (out.size() >= kBlock) {
    fill_normal(out, static_cast<float>(mean), static_cast<float>(std), [this] { return uniform_float(); });
  } else {
    for (float& value : out) value = static_cast<float>(normal_double() * std + mean);
  }
}

void Generator::normal(std::span<double> out, double mean, double std) {
  if (out.size() >= kBlock) {
    fill_normal(out, mean, std, [this] { return uniform_double(); });
  } else {
    for (double& value : out) value = normal_double() * std + mean;
  }
}

}  // namespace lockstep

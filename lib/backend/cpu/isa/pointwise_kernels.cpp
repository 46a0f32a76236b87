// Elementwise loops that the compiler vectorises for each instruction set.
#include "backend/cpu/isa/pointwise_kernels.h"

#include <cstdint>

namespace lockstep::LOCKSTEP_ISA {
namespace {

void fill(size_t n, float value, float* x) {
  for (size_t i = 0; i < n; ++i) x[i] = value;
}

void add(size_t n, const float* a, const float* b, float* y) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void relu(size_t n, const float* x, float* y) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) y[i] = x[i] <= 0 ? 0.0F : x[i];
}

void relu_mask(size_t n, const float* y, const float* dy, float* dx) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) dx[i] = y[i] > 0 ? dy[i] : 0.0F;
}

void leaky_relu(size_t n, float slope, const float* x, float* y) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

void leaky_relu_backward(size_t n, float slope, const float* x, const float* dy, float* dx) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : slope * dy[i];
}

// x = k ln2 + r with |r| <= ln2 / 2; exp(x) = 2^k exp(r), the latter by Cephes' polynomial of degree 6 (expf.c).
// Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits of the float.
void exp(size_t n, const float* x, float* y) {
  constexpr float kRound = 12582912.0F, kLow = -87.33F, kHigh = 88.37F;
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    float a = x[i] < kLow ? kLow : x[i];
    a = a > kHigh ? kHigh : a;
    const float rounded = a * 1.44269504088896341F + kRound;
    const float k = rounded - kRound;
    const float r = (a - k * 0.693359375F) - k * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    const uint32_t bits = __builtin_bit_cast(uint32_t, rounded);
    const float value = p * __builtin_bit_cast(float, (bits + 127) << 23);  // times 2^k, k in [-126, 127]
    y[i] = x[i] < kLow ? 0.0F : x[i] > kHigh ? __builtin_inff() : value;
  }
}

}  // namespace

const PointwiseKernels pointwise_kernels = {fill, add, relu, relu_mask, leaky_relu, leaky_relu_backward, exp};

}  // namespace lockstep::LOCKSTEP_ISA

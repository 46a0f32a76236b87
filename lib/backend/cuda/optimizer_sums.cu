// Norms, clipping and the small operations beside the optimizers.
#include <cmath>
#include <cstdint>

#include "backend/cuda/device_math.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/optimizer_ops.h"

namespace lockstep {
namespace {

struct Sum {
  static constexpr double identity() { return 0; }
  static constexpr double combine(double a, double b) { return a + b; }
};

struct Squares : Sum {
  const float* x;
  explicit Squares(const float* array) : x(array) {}
  constexpr double operator()(size_t i) const {
    const double value = x[i];
    return value * value;  // exact: a float has 24 bits, a double 53
  }
};

struct Magnitudes : Sum {
  const float* x;
  explicit Magnitudes(const float* array) : x(array) {}
  constexpr double operator()(size_t i) const { return x[i] < 0 ? -static_cast<double>(x[i]) : x[i]; }
};

struct Powers : Sum {
  const float* x;
  double power;
  Powers(const float* array, double exponent) : x(array), power(exponent) {}
  constexpr double operator()(size_t i) const { return ::pow(::fabs(static_cast<double>(x[i])), power); }
};

// Without the sign bit floats order like their bit patterns, and a NaN is above infinity.
struct Largest {
  static constexpr int32_t identity() { return 0; }
  static constexpr int32_t combine(int32_t a, int32_t b) { return a > b ? a : b; }
  const float* x;
  constexpr int32_t operator()(size_t i) const { return __builtin_bit_cast(int32_t, x[i]) & 0x7fffffff; }
};

struct Scale {
  float* x;
  float factor;
  constexpr void operator()(size_t i) const { x[i] *= factor; }
};

struct Add {
  const float* x;
  float* y;
  constexpr void operator()(size_t i) const { y[i] = x[i] + y[i]; }
};

struct Clamp {
  float* x;
  float limit;
  constexpr void operator()(size_t i) const {
    const float value = x[i] > limit ? limit : x[i];
    x[i] = value < -limit ? -limit : value;
  }
};

struct Fill {
  float *x, value;
  constexpr void operator()(size_t i) const { x[i] = value; }
};

struct Lerp {
  float* x;
  const float* y;
  float weight;
  constexpr void operator()(size_t i) const { x[i] = cuda::DeviceMath::fma(weight, y[i] - x[i], x[i]); }
};

struct Swap {
  float *x, *y;
  constexpr void operator()(size_t i) const {
    const float value = x[i];
    x[i] = y[i];
    y[i] = value;
  }
};

constexpr size_t part_bytes = sizeof(double);

}  // namespace

CudaOptimizerOps::CudaOptimizerOps(cuda::Context& context)
    : context_(context),
      parts_(context.allocate((cuda::reduction_blocks + 1) * part_bytes)),
      result_(context.pinned(part_bytes)) {}

template <class Reduction>
auto CudaOptimizerOps::reduced(size_t n, const Reduction& reduction) const {
  using Value = decltype(Reduction::identity());
  if (n == 0) return Reduction::identity();
  cuda::launch_reduction(stream(), n, reduction, static_cast<Value*>(parts_.data()));
  context_.to_host(context_.compute(), result_.data(), parts_.data(), sizeof(Value));
  context_.synchronize(context_.compute());
  return result_.as<Value>()[0];
}

double CudaOptimizerOps::sum_of_squares(size_t n, const float* x) const { return reduced(n, Squares(x)); }
double CudaOptimizerOps::sum_of_abs(size_t n, const float* x) const { return reduced(n, Magnitudes(x)); }
double CudaOptimizerOps::sum_of_powers(size_t n, const float* x, double power) const {
  return reduced(n, Powers(x, power));
}
float CudaOptimizerOps::max_abs(size_t n, const float* x) const {
  return __builtin_bit_cast(float, reduced(n, Largest{x}));
}

template <class Body>
void CudaOptimizerOps::queue(size_t n, const Body& body) const {
  if (queues()) cuda::launch(stream(), n, body);
}

void CudaOptimizerOps::scale(size_t n, float* x, float factor) const { queue(n, Scale{x, factor}); }
void CudaOptimizerOps::add(size_t n, const float* x, float* y) const { queue(n, Add{x, y}); }
void CudaOptimizerOps::clamp(size_t n, float* x, float limit) const { queue(n, Clamp{x, limit}); }
void CudaOptimizerOps::fill(size_t n, float* x, float value) const { queue(n, Fill{x, value}); }
void CudaOptimizerOps::lerp(size_t n, float* x, const float* y, float weight) const { queue(n, Lerp{x, y, weight}); }
void CudaOptimizerOps::swap(size_t n, float* x, float* y) const { queue(n, Swap{x, y}); }

}  // namespace lockstep

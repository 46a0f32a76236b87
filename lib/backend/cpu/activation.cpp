// Elementwise activations. ReLU and leaky ReLU run vectorised kernels; the transcendental ones compute in double, so
// that they are right to the last float digit.
#include <memory>

#include "backend/activation_functors.h"
#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/pointwise.h"
#include "core/error.h"

namespace lockstep {
namespace {

const float* floats(const void* x) { return static_cast<const float*>(x); }
float* floats(void* x) { return static_cast<float*>(x); }

class Relu final : public ActivationPlan {
 public:
  explicit Relu(size_t count) : count_(count) {}
  void forward(const void* x, void* y) override { pointwise_kernels().relu(count_, floats(x), floats(y)); }
  void backward(const void*, const void* y, const void* dy, void* dx) override {
    pointwise_kernels().relu_mask(count_, floats(y), floats(dy), floats(dx));
  }

 private:
  size_t count_;
};

class HalfRelu final : public ActivationPlan {
 public:
  HalfRelu(size_t count, DType type) : count_(count), kernels_(half_kernels(type)) {}
  void forward(const void* x, void* y) override { kernels_.relu(count_, x, y); }
  void backward(const void*, const void* y, const void* dy, void* dx) override {
    kernels_.relu_mask(count_, y, dy, dx);
  }

 private:
  size_t count_;
  const HalfKernels& kernels_;
};

class LeakyRelu final : public ActivationPlan {
 public:
  LeakyRelu(size_t count, double slope) : count_(count), slope_(static_cast<float>(slope)) {}
  void forward(const void* x, void* y) override {
    pointwise_kernels().leaky_relu(count_, slope_, floats(x), floats(y));
  }
  void backward(const void* x, const void*, const void* dy, void* dx) override {
    pointwise_kernels().leaky_relu_backward(count_, slope_, floats(x), floats(dy), floats(dx));
  }

 private:
  size_t count_;
  float slope_;
};

template <class Function>
class Elementwise final : public ActivationPlan {
 public:
  explicit Elementwise(size_t count) : count_(count) {}
  void forward(const void* from, void* to) override {
    const float* x = floats(from);
    float* y = floats(to);
    for (size_t i = 0; i < count_; ++i) y[i] = static_cast<float>(Function::value(static_cast<double>(x[i])));
  }
  void backward(const void* given, const void* output, const void* from, void* to) override {
    const float *x = floats(given), *y = floats(output), *dy = floats(from);
    float* dx = floats(to);
    for (size_t i = 0; i < count_; ++i) {
      const float in = Function::kReadsInput ? x[i] : 0.0F, out = Function::kReadsInput ? 0.0F : y[i];
      const double slope = Function::slope(static_cast<double>(in), static_cast<double>(out));
      dx[i] = static_cast<float>(static_cast<double>(dy[i]) * slope);
    }
  }

 private:
  size_t count_;
};

}  // namespace

std::unique_ptr<ActivationPlan> make_cpu_activation(const ActivationSpec& spec) {
  const auto count = static_cast<size_t>(spec.count);
  if (spec.dtype != DType::f32) {
    if (spec.kind == Activation::relu) return std::make_unique<HalfRelu>(count, spec.dtype);
    throw_error("activation: only relu runs on {}", name(spec.dtype));
  }
  switch (spec.kind) {
    case Activation::relu: return std::make_unique<Relu>(count);
    case Activation::leaky_relu: return std::make_unique<LeakyRelu>(count, spec.negative_slope);
    case Activation::gelu: return std::make_unique<Elementwise<GeluFunctor>>(count);
    case Activation::gelu_tanh: return std::make_unique<Elementwise<GeluTanhFunctor>>(count);
    case Activation::tanh: return std::make_unique<Elementwise<TanhFunctor>>(count);
    case Activation::sigmoid: return std::make_unique<Elementwise<SigmoidFunctor>>(count);
    case Activation::none: break;
  }
  throw_error("activation: nothing to plan for kind 'none'");
}

}  // namespace lockstep

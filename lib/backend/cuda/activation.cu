// Elementwise activations. ReLU also on 16-bit types; the transcendental ones in double, as on the CPU, whose last bits
// a GPU's own exp and tanh may miss.
#include <type_traits>

#include "backend/activation_functors.h"
#include "backend/cuda/by_type.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/pointwise.h"

namespace lockstep {
namespace {

template <class T>
struct ReluForward {
  const T* x;
  T* y;
  constexpr void operator()(size_t i) const { y[i] = widen(x[i]) <= 0 ? T{} : x[i]; }  // NaN stays NaN
};

struct LeakyForward {
  const float* x;
  float *y, slope;
  constexpr void operator()(size_t i) const { y[i] = x[i] > 0 ? x[i] : slope * x[i]; }
};

struct LeakyBackward {
  const float *x, *dy;
  float *dx, slope;
  constexpr void operator()(size_t i) const { dx[i] = x[i] > 0 ? dy[i] : slope * dy[i]; }
};

template <class Function>
struct Forward {
  const float* x;
  float* y;
  constexpr void operator()(size_t i) const { y[i] = static_cast<float>(Function::value(static_cast<double>(x[i]))); }
};

template <class Function>
struct Backward {
  const float *x, *y, *dy;
  float* dx;
  constexpr void operator()(size_t i) const {
    const double in = Function::kReadsInput ? x[i] : 0.0, out = Function::kReadsInput ? 0.0 : y[i];
    dx[i] = static_cast<float>(static_cast<double>(dy[i]) * Function::slope(in, out));
  }
};

const float* floats(const void* x) { return static_cast<const float*>(x); }
float* floats(void* x) { return static_cast<float*>(x); }

class Relu final : public ActivationPlan {
 public:
  Relu(const cuda::Context& context, size_t count, DType type) : context_(context), count_(count), type_(type) {}
  void forward(const void* x, void* y) override {
    cuda::by_type(type_, [&](auto* null) {
      using T = std::remove_pointer_t<decltype(null)>;
      cuda::launch(context_.compute().get(), count_, ReluForward<T>{static_cast<const T*>(x), static_cast<T*>(y)});
    });
  }
  void backward(const void*, const void* y, const void* dy, void* dx) override {
    cuda_relu_mask(context_, type_, count_, y, dy, dx);
  }

 private:
  const cuda::Context& context_;
  size_t count_;
  DType type_;
};

class LeakyRelu final : public ActivationPlan {
 public:
  LeakyRelu(const cuda::Context& context, size_t count, double slope)
      : context_(context), count_(count), slope_(static_cast<float>(slope)) {}
  void forward(const void* x, void* y) override {
    cuda::launch(context_.compute().get(), count_, LeakyForward{floats(x), floats(y), slope_});
  }
  void backward(const void* x, const void*, const void* dy, void* dx) override {
    cuda::launch(context_.compute().get(), count_, LeakyBackward{floats(x), floats(dy), floats(dx), slope_});
  }

 private:
  const cuda::Context& context_;
  size_t count_;
  float slope_;
};

template <class Function>
class Elementwise final : public ActivationPlan {
 public:
  Elementwise(const cuda::Context& context, size_t count) : context_(context), count_(count) {}
  void forward(const void* x, void* y) override {
    cuda::launch(context_.compute().get(), count_, Forward<Function>{floats(x), floats(y)});
  }
  void backward(const void* x, const void* y, const void* dy, void* dx) override {
    cuda::launch(context_.compute().get(), count_, Backward<Function>{floats(x), floats(y), floats(dy), floats(dx)});
  }

 private:
  const cuda::Context& context_;
  size_t count_;
};

}  // namespace

std::unique_ptr<ActivationPlan> make_cuda_activation(const cuda::Context& context, const ActivationSpec& spec) {
  const auto count = static_cast<size_t>(spec.count);
  if (spec.kind == Activation::relu) return std::make_unique<Relu>(context, count, spec.dtype);
  if (spec.dtype != DType::f32) cuda::refuse("activation: only relu runs on " + std::string(name(spec.dtype)));
  switch (spec.kind) {
    case Activation::leaky_relu: return std::make_unique<LeakyRelu>(context, count, spec.negative_slope);
    case Activation::gelu: return std::make_unique<Elementwise<GeluFunctor>>(context, count);
    case Activation::gelu_tanh: return std::make_unique<Elementwise<GeluTanhFunctor>>(context, count);
    case Activation::tanh: return std::make_unique<Elementwise<TanhFunctor>>(context, count);
    case Activation::sigmoid: return std::make_unique<Elementwise<SigmoidFunctor>>(context, count);
    case Activation::relu:
    case Activation::none: break;
  }
  cuda::refuse("activation: nothing to plan for kind 'none'");
}

}  // namespace lockstep

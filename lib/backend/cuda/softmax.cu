// Softmax over the middle axis: y = exp(x - max) / sum exp(x - max); dx = y (dy - sum y dy). A thread per row, as rows
// are as long as there are classes.
#include <cmath>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/pointwise.h"

namespace lockstep {
namespace {

struct Row {
  size_t axis, inner;
  constexpr size_t first(size_t i) const { return i / inner * axis * inner + i % inner; }
};

struct Forward : Row {
  const float* x;
  float* y;
  Forward(const Row& row, const float* from, float* to) : Row(row), x(from), y(to) {}
  constexpr void operator()(size_t i) const {
    const size_t at = first(i);
    float largest = -INFINITY;
    for (size_t k = 0; k < axis; ++k) largest = ::fmaxf(largest, x[at + k * inner]);
    double sum = 0;
    for (size_t k = 0; k < axis; ++k) {
      const float e = ::expf(x[at + k * inner] - largest);
      y[at + k * inner] = e;
      sum += static_cast<double>(e);
    }
    const double factor = 1 / sum;
    for (size_t k = 0; k < axis; ++k)
      y[at + k * inner] = static_cast<float>(static_cast<double>(y[at + k * inner]) * factor);
  }
};

struct Backward : Row {
  const float *y, *dy;
  float* dx;
  Backward(const Row& row, const float* output, const float* from, float* to) : Row(row), y(output), dy(from), dx(to) {}
  constexpr void operator()(size_t i) const {
    const size_t at = first(i);
    double dot = 0;
    for (size_t k = 0; k < axis; ++k)
      dot += static_cast<double>(y[at + k * inner]) * static_cast<double>(dy[at + k * inner]);
    for (size_t k = 0; k < axis; ++k) {
      const size_t here = at + k * inner;
      dx[here] = static_cast<float>(static_cast<double>(y[here]) * (static_cast<double>(dy[here]) - dot));
    }
  }
};

class CudaSoftmax final : public SoftmaxPlan {
 public:
  CudaSoftmax(const cuda::Context& context, const SoftmaxSpec& spec)
      : context_(context),
        rows_(static_cast<size_t>(spec.outer * spec.inner)),
        row_{static_cast<size_t>(spec.axis), static_cast<size_t>(spec.inner)} {}
  void forward(const float* x, float* y) override {
    cuda::launch(context_.compute().get(), rows_, Forward(row_, x, y));
  }
  void backward(const float* y, const float* dy, float* dx) override {
    cuda::launch(context_.compute().get(), rows_, Backward(row_, y, dy, dx));
  }

 private:
  const cuda::Context& context_;
  size_t rows_;
  Row row_;
};

}  // namespace

std::unique_ptr<SoftmaxPlan> make_cuda_softmax(const cuda::Context& context, const SoftmaxSpec& spec) {
  if (spec.outer < 0 || spec.axis < 1 || spec.inner < 1) cuda::refuse("softmax: nothing to normalise");
  return std::make_unique<CudaSoftmax>(context, spec);
}

}  // namespace lockstep

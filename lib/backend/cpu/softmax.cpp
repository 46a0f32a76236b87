// Softmax over the middle axis: y = exp(x - max) / sum exp(x - max); dx = y (dy - sum y dy).
#include <cmath>
#include <limits>
#include <memory>

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"

namespace lockstep {
namespace {

class CpuSoftmax final : public SoftmaxPlan {
 public:
  explicit CpuSoftmax(const SoftmaxSpec& spec) : spec_(spec) {
    if (spec.outer < 0 || spec.axis < 1 || spec.inner < 1) throw_error("softmax: nothing to normalise");
  }

  void forward(const float* x, float* y) override {
    const int64_t stride = spec_.inner;
    for (int64_t o = 0; o < spec_.outer; ++o) {
      for (int64_t i = 0; i < spec_.inner; ++i) {
        const int64_t at = o * spec_.axis * stride + i;
        float largest = -std::numeric_limits<float>::infinity();
        for (int64_t k = 0; k < spec_.axis; ++k) largest = std::fmax(largest, x[at + k * stride]);
        double sum = 0;
        for (int64_t k = 0; k < spec_.axis; ++k) {
          const float e = std::exp(x[at + k * stride] - largest);
          y[at + k * stride] = e;
          sum += static_cast<double>(e);
        }
        const double factor = 1 / sum;
        for (int64_t k = 0; k < spec_.axis; ++k)
          y[at + k * stride] = static_cast<float>(static_cast<double>(y[at + k * stride]) * factor);
      }
    }
  }

  void backward(const float* y, const float* dy, float* dx) override {
    const int64_t stride = spec_.inner;
    for (int64_t o = 0; o < spec_.outer; ++o) {
      for (int64_t i = 0; i < spec_.inner; ++i) {
        const int64_t at = o * spec_.axis * stride + i;
        double dot = 0;
        for (int64_t k = 0; k < spec_.axis; ++k)
          dot += static_cast<double>(y[at + k * stride]) * static_cast<double>(dy[at + k * stride]);
        for (int64_t k = 0; k < spec_.axis; ++k) {
          const int64_t at_k = at + k * stride;
          dx[at_k] = static_cast<float>(static_cast<double>(y[at_k]) * (static_cast<double>(dy[at_k]) - dot));
        }
      }
    }
  }

 private:
  SoftmaxSpec spec_;
};

}  // namespace

std::unique_ptr<SoftmaxPlan> make_cpu_softmax(const SoftmaxSpec& spec) { return std::make_unique<CpuSoftmax>(spec); }

}  // namespace lockstep

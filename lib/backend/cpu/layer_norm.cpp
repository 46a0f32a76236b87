#include "backend/cpu/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/isa/norm_kernels.h"
#include "core/cpu_features.h"
#include "core/error.h"

namespace lockstep {

void row_statistics(int64_t rows, int64_t inner, double eps, const float* x, double* statistics) {
  const NormKernels& kernels = select_isa(isa_generic::norm_kernels, isa_avx2::norm_kernels, isa_avx512::norm_kernels);
  const ChannelLayout row{.images = 1, .blocks = 1, .spatial = inner, .block = 1};
  for (int64_t r = 0; r < rows; ++r, x += inner) {
    double sum = 0, squares = 0;
    kernels.sums(row, x, &sum);
    const double mean = sum / static_cast<double>(inner);
    const auto rounded = static_cast<float>(mean);
    kernels.centered_squares(row, x, &rounded, &squares);
    const double shift = mean - static_cast<double>(rounded);
    const double variance = squares / static_cast<double>(inner) - shift * shift;
    statistics[2 * r] = mean;
    statistics[2 * r + 1] = 1 / std::sqrt((variance < 0 ? 0 : variance) + eps);
  }
}

namespace {

class CpuLayerNorm final : public LayerNormPlan {
 public:
  explicit CpuLayerNorm(const LayerNormSpec& spec) : spec_(spec) {
    if (spec.outer < 0 || spec.inner < 1)
      throw_error("layer_norm: nothing to normalise: rows of {} elements", spec.inner);
  }
  size_t saved_bytes() const override { return static_cast<size_t>(spec_.outer) * 2 * sizeof(double); }
  size_t workspace_bytes() const override { return static_cast<size_t>(spec_.inner) * 2 * sizeof(double); }

  void forward(const float* x, const float* weight, const float* bias, float* y, void* saved) override {
    auto* statistics = static_cast<double*>(saved);
    row_statistics(spec_.outer, spec_.inner, spec_.eps, x, statistics);
    for (int64_t r = 0; r < spec_.outer; ++r, x += spec_.inner, y += spec_.inner, statistics += 2) {
      const double mean = statistics[0], rstd = statistics[1];
      for (int64_t i = 0; i < spec_.inner; ++i) {
        const double normal = (static_cast<double>(x[i]) - mean) * rstd;
        const double scaled = weight != nullptr ? normal * static_cast<double>(weight[i]) : normal;
        y[i] = static_cast<float>(bias != nullptr ? scaled + static_cast<double>(bias[i]) : scaled);
      }
    }
  }

  // With g = dy w: dx = rstd (g - mean(g) - xhat mean(g xhat)); dw = sum over rows of dy xhat, db of dy.
  void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                bool accumulate, const void* saved, void* workspace) override {
    const auto* statistics = static_cast<const double*>(saved);
    const auto inner = static_cast<size_t>(spec_.inner);
    auto *dw = static_cast<double*>(workspace), *db = dw + inner;
    std::fill_n(dw, 2 * inner, 0.0);
    for (int64_t r = 0; r < spec_.outer; ++r, x += inner, dy += inner, statistics += 2) {
      const double mean = statistics[0], rstd = statistics[1];
      double sum = 0, sum_normal = 0;
      for (size_t i = 0; i < inner; ++i) {
        const double normal = (static_cast<double>(x[i]) - mean) * rstd, gradient = dy[i];
        const double weighted = weight != nullptr ? gradient * static_cast<double>(weight[i]) : gradient;
        sum += weighted;
        sum_normal += weighted * normal;
        dw[i] += gradient * normal;
        db[i] += gradient;
      }
      if (dx == nullptr) continue;
      const double mean_sum = sum / static_cast<double>(inner), mean_normal = sum_normal / static_cast<double>(inner);
      for (size_t i = 0; i < inner; ++i) {
        const double normal = (static_cast<double>(x[i]) - mean) * rstd, gradient = dy[i];
        const double weighted = weight != nullptr ? gradient * static_cast<double>(weight[i]) : gradient;
        dx[i] = static_cast<float>(rstd * (weighted - mean_sum - normal * mean_normal));
      }
      dx += inner;
    }
    for (size_t i = 0; i < inner; ++i) {
      if (dweight != nullptr) dweight[i] = (accumulate ? dweight[i] : 0.0F) + static_cast<float>(dw[i]);
      if (dbias != nullptr) dbias[i] = (accumulate ? dbias[i] : 0.0F) + static_cast<float>(db[i]);
    }
  }

 private:
  LayerNormSpec spec_;
};

}  // namespace

std::unique_ptr<LayerNormPlan> make_cpu_layer_norm(const LayerNormSpec& spec) {
  return std::make_unique<CpuLayerNorm>(spec);
}

}  // namespace lockstep

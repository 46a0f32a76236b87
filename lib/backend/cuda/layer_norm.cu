// Layer normalisation: y = (x - mean) rstd w + b over the rows of a matrix, in double as on the CPU. Statistics by one
// pass over each row (batch_norm_kernels.cu says why that is exact enough).
#include <cmath>

#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/pair_sum.h"
#include "backend/cuda/row_statistics.h"

namespace lockstep::cuda {
namespace {

struct Rows {
  size_t inner;
  const float* x;
  const double* statistics;
  constexpr double normal(size_t row, size_t i) const {
    return (static_cast<double>(x[row * inner + i]) - statistics[2 * row]) * statistics[2 * row + 1];
  }
};

struct Forward : Rows {
  const float *weight, *bias;
  float* y;
  Forward(const Rows& rows, const float* w, const float* b, float* to) : Rows(rows), weight(w), bias(b), y(to) {}
  constexpr void operator()(size_t row, size_t i) const {
    double value = normal(row, i);
    if (weight != nullptr) value *= static_cast<double>(weight[i]);
    if (bias != nullptr) value += static_cast<double>(bias[i]);
    y[row * inner + i] = static_cast<float>(value);
  }
};

struct Weighted : Rows {
  const float *dy, *weight;
  Weighted(const Rows& rows, const float* from, const float* w) : Rows(rows), dy(from), weight(w) {}
  constexpr double weighted(size_t row, size_t i) const {
    const double gradient = dy[row * inner + i];
    return weight != nullptr ? gradient * static_cast<double>(weight[i]) : gradient;
  }
};

// Of a row: the sums of g = dy w and of g xhat.
struct RowSums : Weighted, AddPairs {
  explicit RowSums(const Weighted& rows) : Weighted(rows) {}
  constexpr PairSum operator()(size_t i, size_t row) const {
    const double g = weighted(row, i);
    return {g, g * normal(row, i)};
  }
};

struct StoreMeans {
  size_t inner;
  PairSum* means;
  constexpr void operator()(size_t row, const PairSum& sums) const {
    means[row] = {sums.first / static_cast<double>(inner), sums.second / static_cast<double>(inner)};
  }
};

struct InputGradient : Weighted {
  const PairSum* means;
  float* dx;
  InputGradient(const Weighted& rows, const PairSum* m, float* to) : Weighted(rows), means(m), dx(to) {}
  constexpr void operator()(size_t row, size_t i) const {
    const double value = weighted(row, i) - means[row].first - normal(row, i) * means[row].second;
    dx[row * inner + i] = static_cast<float>(statistics[2 * row + 1] * value);
  }
};

// Over the rows: sums of dy xhat and of dy.
struct ParameterSums : Weighted, AddPairs {
  explicit ParameterSums(const Weighted& rows) : Weighted(rows) {}
  constexpr PairSum operator()(size_t row, size_t i) const {
    const double gradient = dy[row * inner + i];
    return {gradient * normal(row, i), gradient};
  }
};

class CudaLayerNorm final : public LayerNormPlan {
 public:
  CudaLayerNorm(Context& context, const LayerNormSpec& spec)
      : context_(context),
        spec_(spec),
        outer_(static_cast<size_t>(spec.outer)),
        inner_(static_cast<size_t>(spec.inner)),
        statistics_(row_statistics_shape(outer_, inner_)),
        parameters_(column_shape(outer_, inner_, false)),
        parts_(context.allocate(statistics_.parts() * sizeof(PairSum))) {}
  size_t saved_bytes() const override { return outer_ * 2 * sizeof(double); }
  size_t workspace_bytes() const override {
    const size_t most = parameters_.parts() > statistics_.parts() ? parameters_.parts() : statistics_.parts();
    return (outer_ + most) * sizeof(PairSum);
  }

  void forward(const float* x, const float* weight, const float* bias, float* y, void* saved) override {
    auto* statistics = static_cast<double*>(saved);
    row_statistics(stream(), statistics_, spec_.eps, x, static_cast<PairSum*>(parts_.data()), statistics);
    launch_matrix(stream(), outer_, inner_, Forward({inner_, x, statistics}, weight, bias, y));
  }

  void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                bool accumulate, const void* saved, void* workspace) override {
    const Weighted rows({inner_, x, static_cast<const double*>(saved)}, dy, weight);
    auto *means = static_cast<PairSum*>(workspace), *parts = means + outer_;
    if (dweight != nullptr || dbias != nullptr)
      launch_columns(stream(), parameters_, ParameterSums(rows), parts, AddToParameters{dweight, dbias, accumulate});
    if (dx == nullptr) return;
    launch_columns(stream(), statistics_, RowSums(rows), parts, StoreMeans{inner_, means});
    launch_matrix(stream(), outer_, inner_, InputGradient(rows, means, dx));
  }

 private:
  cudaStream_t stream() const { return context_.compute().get(); }

  Context& context_;
  LayerNormSpec spec_;
  size_t outer_, inner_;
  ColumnShape statistics_, parameters_;  // sums of rows, and over the rows
  Buffer parts_;
};

}  // namespace

std::unique_ptr<LayerNormPlan> make_layer_norm(Context& context, const LayerNormSpec& spec) {
  if (spec.outer < 0 || spec.inner < 1)
    refuse("layer_norm: nothing to normalise: rows of " + std::to_string(spec.inner) + " elements");
  return std::make_unique<CudaLayerNorm>(context, spec);
}

}  // namespace lockstep::cuda

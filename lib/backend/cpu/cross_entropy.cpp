// Cross-entropy from logits. With d = x - max, log p_c = d_c - log sum exp d. Exponentials of the whole batch are taken
// in one vectorised pass; everything that is summed is double.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "backend/cpu/loss.h"
#include "backend/cpu/pointwise.h"
#include "core/error.h"

namespace lockstep {
namespace {

class CpuCrossEntropy final : public LossPlan {
 public:
  CpuCrossEntropy(const LossSpec& spec, int64_t batch, int64_t classes)
      : spec_(spec),
        batch_(batch),
        classes_(static_cast<size_t>(classes)),
        smooth_(spec.label_smoothing / static_cast<double>(classes)) {
    weight_sum_ = 0;
    for (size_t c = 0; c < classes_; ++c) weight_sum_ += class_weight(c);
    shifted_.resize(static_cast<size_t>(batch) * classes_);
    exps_.resize(shifted_.size());
  }

  LossSums forward(const TensorView& output, const TensorView& target) override {
    return run(output, target, 0, nullptr);
  }
  LossSums forward_backward(const TensorView& output, const TensorView& target, double scale,
                            float* d_output) override {
    return run(output, target, scale, d_output);
  }

 private:
  struct Row {
    const float *shifted, *exps;
    double sum, log_sum;  // of exps
    float* gradient;      // null: not wanted
  };

  double class_weight(size_t c) const {
    return spec_.class_weights.empty() ? 1.0 : static_cast<double>(spec_.class_weights[c]);
  }

  LossSums run(const TensorView& output, const TensorView& target, double scale, float* d_output) {
    const auto rows =
        static_cast<size_t>(check_loss_output("cross_entropy", output, batch_, static_cast<int64_t>(classes_)));
    const bool indices = target.desc.dtype == DType::i64;
    if (!indices) check_dense_target("cross_entropy", output, target);
    if (indices) check_label_target(target, static_cast<int64_t>(rows));
    take_exponentials(rows, output.f32());
    LossSums sums;
    for (size_t i = 0; i < rows; ++i) {
      const size_t at = i * classes_;
      Row row{&shifted_[at], &exps_[at], 0, 0, d_output == nullptr ? nullptr : d_output + at};
      for (size_t c = 0; c < classes_; ++c) row.sum += static_cast<double>(row.exps[c]);
      row.log_sum = std::log(row.sum);
      if (indices)
        add_index_row(row, target.i64()[i], i, scale, sums);
      else
        add_probability_row(row, target.f32() + at, scale, sums);
    }
    return sums;
  }

  void take_exponentials(size_t rows, const float* x) {
    for (size_t i = 0; i < rows; ++i) {
      const float* row = x + i * classes_;
      float largest = row[0];
      for (size_t c = 1; c < classes_; ++c) largest = row[c] > largest ? row[c] : largest;
      for (size_t c = 0; c < classes_; ++c) shifted_[i * classes_ + c] = row[c] - largest;
    }
    pointwise_kernels().exp(rows * classes_, shifted_.data(), exps_.data());
  }

  // (1 - e) w_y (-log p_y) + e / C sum_c w_c (-log p_c); its mean divides both terms by sum w_y.
  void add_index_row(const Row& row, int64_t label, size_t index, double scale, LossSums& sums) const {
    if (label == spec_.ignore_index) {
      if (row.gradient != nullptr) std::fill_n(row.gradient, classes_, 0.0F);
      return;
    }
    if (label < 0 || label >= static_cast<int64_t>(classes_))
      throw_error("cross_entropy: target {} of row {} is not one of {} classes (0 to {})", label, index, classes_,
                  classes_ - 1);
    const auto y = static_cast<size_t>(label);
    const double hit = (1 - spec_.label_smoothing) * class_weight(y);
    sums.weight += class_weight(y);
    sums.loss += hit * (row.log_sum - static_cast<double>(row.shifted[y]));
    if (smooth_ > 0) {
      double weighted = 0;
      for (size_t c = 0; c < classes_; ++c) weighted += class_weight(c) * static_cast<double>(row.shifted[c]);
      sums.loss += smooth_ * (weight_sum_ * row.log_sum - weighted);
    }
    if (row.gradient == nullptr) return;
    const double factor = (hit + smooth_ * weight_sum_) / row.sum;
    if (smooth_ > 0) {
      for (size_t c = 0; c < classes_; ++c)
        row.gradient[c] =
            static_cast<float>(scale * (factor * static_cast<double>(row.exps[c]) - smooth_ * class_weight(c)));
    } else {
      const auto factor_f32 = static_cast<float>(scale * factor);
      for (size_t c = 0; c < classes_; ++c) row.gradient[c] = row.exps[c] * factor_f32;
    }
    const double smoothing_y = smooth_ * class_weight(y);
    row.gradient[y] = static_cast<float>(scale * (factor * static_cast<double>(row.exps[y]) - smoothing_y - hit));
  }

  // sum_c t'_c w_c (-log p_c) with t' = (1 - e) t + e / C; its mean divides by the number of rows.
  void add_probability_row(const Row& row, const float* target, double scale, LossSums& sums) const {
    const auto weighted_target = [&](size_t c) {
      return ((1 - spec_.label_smoothing) * static_cast<double>(target[c]) + smooth_) * class_weight(c);
    };
    double total = 0;
    for (size_t c = 0; c < classes_; ++c) {
      total += weighted_target(c);
      sums.loss += weighted_target(c) * (row.log_sum - static_cast<double>(row.shifted[c]));
    }
    sums.weight += 1;
    if (row.gradient == nullptr) return;
    for (size_t c = 0; c < classes_; ++c)
      row.gradient[c] =
          static_cast<float>(scale * (total * static_cast<double>(row.exps[c]) / row.sum - weighted_target(c)));
  }

  LossSpec spec_;
  int64_t batch_;
  size_t classes_;
  double smooth_, weight_sum_;  // e / C; sum of the class weights
  std::vector<float> shifted_, exps_;
};

}  // namespace

std::unique_ptr<LossPlan> make_cpu_cross_entropy(const LossSpec& spec, int64_t batch, int64_t classes) {
  return std::make_unique<CpuCrossEntropy>(spec, batch, classes);
}

}  // namespace lockstep

// Losses as sums over samples; the caller divides by its own (global) denominator.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace lockstep {

struct LossSpec {
  enum class Kind { cross_entropy, mse, l1, smooth_l1, bce_with_logits };
  Kind kind = Kind::cross_entropy;
  double label_smoothing = 0;        // cross_entropy
  std::vector<float> class_weights;  // cross_entropy: empty or one per class; bce: pos_weight, empty or one per output
  int64_t ignore_index = -100;       // cross_entropy
  double beta = 1;                   // smooth_l1
};

// Mean loss = loss / weight. weight: cross_entropy: sum of the targets' class weights over non-ignored rows;
// the regression losses: number of elements. Double, so that sums over ranks and batches don't lose digits.
struct LossSums {
  double loss = 0;
  double weight = 0;
};

class LossPlan {
 public:
  virtual ~LossPlan() = default;
  // output [n, C] (n <= the bound batch) in canonical layout; target: i64 [n] class indices, or f32 [n, C]
  // (cross_entropy: class probabilities). Throws Error for a class index out of range that is not ignore_index.
  virtual LossSums forward(const TensorView& output, const TensorView& target) = 0;
  // Also writes d_output = scale * d(sum loss)/d(output).
  virtual LossSums forward_backward(const TensorView& output, const TensorView& target, double scale,
                                    float* d_output) = 0;
  // The same without waiting for the device: what forward_backward would return is added to what take_sums gives.
  virtual void add_forward_backward(const TensorView& output, const TensorView& target, double scale, float* d_output) {
    const LossSums sums = forward_backward(output, target, scale, d_output);
    added_.loss += sums.loss, added_.weight += sums.weight;
  }
  // The sums of all calls since the last take_sums; throws Error for what one of them would have thrown.
  virtual LossSums take_sums() { return std::exchange(added_, {}); }

 private:
  LossSums added_;
};

}  // namespace lockstep

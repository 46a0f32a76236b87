// Losses as sums over samples; the caller divides by its own (global) denominator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
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
  // The same without waiting for the device: what forward_backward would return is added to the sums so far, or where
  // `first` becomes them.
  virtual void add_forward_backward(const TensorView& output, const TensorView& target, double scale, float* d_output,
                                    bool first) {
    const LossSums sums = forward_backward(output, target, scale, d_output);
    if (first) added_ = {};
    added_.loss += sums.loss, added_.weight += sums.weight;
  }
  // Sends the sums so far on their way to the host. take_sums: the oldest that were sent and not taken, of which there
  // are one or two; waits for them, and throws Error for what one of the calls would have thrown.
  static constexpr size_t most_sent = 2;
  virtual void send_sums() { sent_[sends_++ % most_sent] = added_; }
  virtual LossSums take_sums() { return sent_[takes_++ % most_sent]; }

 private:
  LossSums added_;
  std::array<LossSums, most_sent> sent_;
  size_t sends_ = 0, takes_ = 0;
};

}  // namespace lockstep

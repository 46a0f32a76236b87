// The gradient noise scale from the norms that data parallelism gives for free (McCandlish, Kaplan, Amodei 2018,
// "An Empirical Model of Large-Batch Training", arXiv:1812.06162, appendix A.1). With b samples the expected square of
// the mean gradient's norm is |G|^2 + S / b, where G is the true gradient and S the trace of the samples' covariance.
// Ranks see it before the reduction with their own b_r samples, all of them afterwards with B = sum b_r:
//   S     = (mean_r |g_r|^2 - |g|^2) / (mean_r 1/b_r - 1/B)
//   |G|^2 = |g|^2 - S / B
//   B_simple = S / |G|^2
// B_simple is about the batch size from which on larger batches save few steps. Both estimates are unbiased but noisy;
// their ratio is not, so S and |G|^2 are averaged over the measured steps first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/optimizer_ops.h"
#include "comm/communicator.h"
#include "core/state.h"
#include "dist/bucket_observer.h"

namespace lockstep {

struct NoiseEstimate {
  double trace = 0, gradient_square = 0;  // S and |G|^2 of this step alone; NaN where fewer than two ranks had samples
  double noise_scale = 0;                 // B_simple of the averages; NaN until there is one, or |G|^2 is not positive
};

// Looks at this rank's buckets as they are launched: afterwards they hold the sum.
class NoiseScale final : public BucketObserver {
 public:
  // windows: (virtual) ranks that this rank stands for; each is a rank in the formulas.
  NoiseScale(Communicator& communicator, const OptimizerOps& ops, int64_t windows = 1);
  // A step in between: begin_step before its first bucket, end_window after each window's last bucket was launched,
  // end_step after the last sum. Collective where it is measured.
  void begin_step(bool measured);
  void before_sum(const Bucket& bucket, std::span<const float> gradients) override;
  void end_window(int64_t own_samples);  // of the window
  // gradients: the reduced ones, of `samples` samples in all; divided: they, and what the buckets held, are the sum
  // over samples divided by `samples`. scale: the loss scale in both.
  void end_step(std::span<const float> gradients, int64_t samples, bool divided, double scale = 1);

  // A step with one window. Collective. own_square: |sum of the gradients of this rank's own_samples|^2; square: the
  // same of all ranks' samples, reduced. A step with a number that is not finite leaves the averages as they were.
  const NoiseEstimate& add(double own_square, int64_t own_samples, double square, int64_t samples);
  const NoiseEstimate& last() const { return last_; }
  State state() const;  // the averages
  void restore(const State& state);

 private:
  struct Window {
    double square;  // of the norm of its samples' summed gradients
    int64_t samples;
  };
  const NoiseEstimate& estimate(double own_factor, double square, int64_t samples);
  double sum_of_windows(double (*term)(const Window&));

  Communicator& communicator_;
  const OptimizerOps& ops_;
  bool measured_step_ = false;
  double own_square_ = 0;  // of the current window
  std::vector<Window> windows_;
  NoiseEstimate last_;
  double trace_ = 0, gradient_square_ = 0;  // moving averages
  int64_t measured_ = 0;
};

}  // namespace lockstep

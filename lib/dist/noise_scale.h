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

#include "backend/optimizer_ops.h"
#include "comm/communicator.h"
#include "dist/gradient_synchronizer.h"

namespace lockstep {

struct NoiseEstimate {
  double trace = 0, gradient_square = 0;  // S and |G|^2 of this step alone; NaN where fewer than two ranks had samples
  double noise_scale = 0;                 // B_simple of the averages; NaN until there is one, or |G|^2 is not positive
};

// Looks at this rank's buckets as they are launched: afterwards they hold the sum.
class NoiseScale final : public BucketObserver {
 public:
  NoiseScale(Communicator& communicator, const OptimizerOps& ops) : communicator_(communicator), ops_(ops) {}
  // A step in between: begin_step before its first bucket, end_step after its last sum. Collective where it is
  // measured.
  void begin_step(bool measured);
  void before_sum(std::span<const float> bucket) override;
  // gradients: the reduced ones, of `samples` samples in all and `own_samples` of this rank; divided: they, and what
  // the buckets held, are the sum over samples divided by `samples`.
  void end_step(std::span<const float> gradients, int64_t own_samples, int64_t samples, bool divided);

  // The arithmetic of end_step. Collective. own_square: |sum of the gradients of this rank's own_samples|^2; square:
  // the same of all ranks' samples, reduced. A step with a number that is not finite leaves the averages as they were.
  const NoiseEstimate& add(double own_square, int64_t own_samples, double square, int64_t samples);
  const NoiseEstimate& last() const { return last_; }

 private:
  Communicator& communicator_;
  const OptimizerOps& ops_;
  bool measured_step_ = false;
  double own_square_ = 0;
  NoiseEstimate last_;
  double trace_ = 0, gradient_square_ = 0;  // moving averages
  int64_t measured_ = 0;
};

}  // namespace lockstep

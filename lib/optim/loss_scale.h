// The factor by which a loss is multiplied so that small gradients survive in fp16: torch.amp.GradScaler's rule and
// numbers. A step whose gradient is not finite is left out and lowers the factor; a run of good steps raises it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/state.h"

namespace lockstep {

struct LossScaleSettings {
  std::optional<double> fixed;  // never changes
  double init = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // good steps in a row
  double floor = 1e-4;
};

class LossScale {
 public:
  explicit LossScale(const LossScaleSettings& settings);

  double scale() const { return static_cast<double>(scale_); }
  float inverse() const { return static_cast<float>(1 / scale()); }  // rounded as GradScaler does
  // After each step, with what all ranks agree on. Throws Error when the scale falls below the floor, or when a fixed
  // scale has left out 100 steps in a row: no factor helps any more.
  void update(bool found_inf);
  int64_t skipped() const { return skipped_; }

  State state() const;
  void restore(const State& state);  // Error: not such a state; a fixed scale stays what the settings say

 private:
  static constexpr int64_t most_in_a_row = 100;
  LossScaleSettings settings_;
  float scale_;
  int64_t good_steps_ = 0;  // since the last change
  int64_t skipped_ = 0, in_a_row_ = 0;
};

}  // namespace lockstep

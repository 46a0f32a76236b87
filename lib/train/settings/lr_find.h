// The learning-rate range test (Smith 2015, arXiv:1506.01186): a short training whose rate grows from step to step, and
// what its loss says about the rates that train.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config.h"

namespace lockstep {

struct LrRange {
  double from = 1e-6, to = 10;
  int64_t steps = 100;
};

// The config of the test: that of the run, with this schedule, without evaluation, checkpoints and early ends, below
// `dir`. Throws Error for a range that is none.
Config lr_find_config(Config config, const LrRange& range, const std::string& dir);

struct LrCurve {
  std::vector<double> rate, loss;
  std::vector<double> smoothed;  // running mean with weight 0.98, its start corrected; up to where it diverges
};
// rate, loss: of the steps, as they come. The curve ends at a loss that is not finite, or above four times the least.
LrCurve lr_curve(std::vector<double> rate, std::vector<double> loss);

struct LrChoice {
  double steepest = 0;  // where the smoothed loss falls fastest, over the logarithm of the rate
  double minimum = 0;   // of the smoothed loss: rates from here on do harm
  // A tenth of the minimum's, and no more than the steepest: what is written into the config.
  double chosen = 0;
};
// Throws Error where the loss never falls.
LrChoice choose_rate(const LrCurve& curve);

std::string lr_find_svg(const LrCurve& curve, const LrChoice& choice);

}  // namespace lockstep

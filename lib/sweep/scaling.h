// What more ranks brought: speed-up T / T1 and efficiency T / (W x T1), for throughput T on W ranks and T1 on one. The
// global batch says which kind of scaling it is: constant, each rank doing less (strong), or growing with W (weak).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

double speedup(double throughput, double on_one);
double efficiency(double throughput, double on_one, int64_t world_size);

// A trial, as far as scaling is concerned.
struct ScalingPoint {
  int64_t world_size = 1, batch_size = 1, accumulate = 1, global_batch = 1;
  std::string others;     // every other parameter of it: only equal ones are compared
  double throughput = 0;  // samples a second; NaN: the trial has none
};

// The trial on one rank to compare with; empty: there is none. weak: of the same batch_size and accumulate. strong: the
// fastest of the same global batch, however it splits it.
struct ScalingBase {
  std::optional<size_t> weak, strong;
};
std::vector<ScalingBase> scaling_bases(const std::vector<ScalingPoint>& points);

}  // namespace lockstep

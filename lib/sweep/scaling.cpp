#include "sweep/scaling.h"

namespace lockstep {

double speedup(double throughput, double on_one) { return throughput / on_one; }

double efficiency(double throughput, double on_one, int64_t world_size) {
  return throughput / (static_cast<double>(world_size) * on_one);
}

std::vector<ScalingBase> scaling_bases(const std::vector<ScalingPoint>& points) {
  std::vector<ScalingBase> bases(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const ScalingPoint& point = points[i];
    for (size_t j = 0; j < points.size(); ++j) {
      const ScalingPoint& one = points[j];
      if (one.world_size != 1 || one.others != point.others || !(one.throughput > 0)) continue;
      if (one.batch_size == point.batch_size && one.accumulate == point.accumulate) bases[i].weak = j;
      if (one.global_batch != point.global_batch) continue;
      std::optional<size_t>& strong = bases[i].strong;
      if (!strong || one.throughput > points[*strong].throughput) strong = j;
    }
  }
  return bases;
}

}  // namespace lockstep

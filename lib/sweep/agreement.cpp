#include "sweep/agreement.h"

#include <cmath>
#include <map>
#include <tuple>

namespace lockstep {
namespace {

Agreement compare(const std::vector<LossCurve>& curves, std::vector<size_t> group) {
  Agreement result{.global_batch = curves[group.front()].global_batch, .curves = std::move(group)};
  std::map<int64_t, std::vector<double>> at;  // losses by samples seen, of the curves in turn
  for (size_t i = 0; i < result.curves.size(); ++i) {
    for (const auto& [samples, loss] : curves[result.curves[i]].loss) {
      std::vector<double>& losses = at[samples];
      if (losses.size() == i && std::isfinite(loss)) losses.push_back(loss);
    }
  }
  for (const auto& [samples, losses] : at) {
    if (losses.size() != result.curves.size()) continue;
    if (result.points++ == 0)
      result.at_samples = samples, result.high = result.curves[0], result.low = result.curves[1];
    size_t high = 0, low = 0;
    for (size_t i = 1; i < losses.size(); ++i) {
      if (losses[i] > losses[high]) high = i;
      if (losses[i] < losses[low]) low = i;
    }
    if (losses[high] - losses[low] <= result.difference) continue;
    result.difference = losses[high] - losses[low];
    result.at_samples = samples;
    result.high = result.curves[high];
    result.low = result.curves[low];
  }
  return result;
}

}  // namespace

std::vector<Agreement> agreements(const std::vector<LossCurve>& curves) {
  std::map<std::tuple<int64_t, std::string>, std::vector<size_t>> groups;
  for (size_t i = 0; i < curves.size(); ++i)
    if (!curves[i].loss.empty()) groups[{curves[i].global_batch, curves[i].others}].push_back(i);
  std::vector<Agreement> results;
  for (auto& [key, group] : groups)
    if (group.size() > 1) results.push_back(compare(curves, std::move(group)));
  return results;
}

}  // namespace lockstep

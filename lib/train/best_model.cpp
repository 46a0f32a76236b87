#include "train/best_model.h"

#include <cmath>

#include "train/metrics/table.h"

namespace lockstep {

BestModel::BestModel(const std::string& metric, const std::optional<std::string>& mode)
    : larger_is_better_(mode ? *mode == "max" : larger_is_better(metric)), best_{.metric = metric} {}

bool BestModel::better(double value) const {
  if (best_.step < 0) return !std::isnan(value);
  return larger_is_better_ ? value > best_.value : value < best_.value;
}

}  // namespace lockstep

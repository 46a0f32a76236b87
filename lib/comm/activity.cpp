#include "comm/activity.h"

#include <fmt/format.h>

namespace lockstep {

void Activity::prepare(double limit_seconds) {
  word_ = pack(Phase::preparation, 0, -1);
  preparation_limit_ = limit_seconds;
}

std::string Activity::describe(uint64_t word) const {
  const uint64_t step = (word >> step_shift) & step_mask, bucket = word & bucket_mask;
  std::string text;
  switch (phase(word)) {
    case Phase::untold: break;
    case Phase::preparation: text = "the preparation"; break;
    case Phase::step: text = fmt::format("step {}", step); break;
    case Phase::evaluation: text = fmt::format("the evaluation after step {}", step); break;
    case Phase::saving: text = fmt::format("the checkpoint after step {}", step); break;
  }
  if (bucket == 0) return text;
  text += fmt::format("{}bucket {}", text.empty() ? "" : ", ", bucket - 1);
  if (bucket <= first_parameters_.size()) text += " from " + first_parameters_[bucket - 1];
  return text;
}

std::string Activity::stopped() const {
  const std::string text = describe(word_);
  return "stopped with an error" + (text.empty() ? "" : " in " + text);
}

}  // namespace lockstep

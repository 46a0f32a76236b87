// What follows from the facts: what stops training, what will make it slow or fragile, and how to mend it.
#pragma once

#include <string>
#include <vector>

#include "train/doctor/facts.h"

namespace lockstep {

struct Finding {
  enum class Level { stops, warns, notes };
  Level level = Level::notes;
  std::string text, cure;  // cure: empty where nothing has to be done
};

// Those that stop training first.
std::vector<Finding> findings(const RunFacts& facts);
bool training_would_start(const std::vector<Finding>& findings);

}  // namespace lockstep

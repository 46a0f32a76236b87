// The table at the end of a run: what a person looks at first.
#pragma once

#include <string>

#include "train/trainer.h"

namespace lockstep {

// One row per epoch: samples, training loss, validation loss and accuracy, samples per second.
std::string summary_table(const RunResult& result);

}  // namespace lockstep

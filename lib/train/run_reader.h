// Reads a run's metrics.jsonl back.
#pragma once

#include <string>
#include <vector>

#include "train/svg_chart.h"

namespace lockstep {

struct RunCurves {
  std::string label;                                                      // the run directory's last component
  std::string arithmetic;                                                 // "global batch 32 = ..."
  Curve train_loss, validation_loss, validation_accuracy, learning_rate;  // over optimizer steps
};

// Throws Error naming file and line for what is not a run's log. A last line cut off by a kill is left out.
RunCurves read_run(const std::string& dir);

}  // namespace lockstep

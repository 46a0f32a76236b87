// Taking up a run where a checkpoint left it: which checkpoint, and whether this launch may go on from it. Rank 0 alone
// looks at the disk (another node may not see the same yet); the others hear from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "core/state.h"
#include "data/data_plan.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config.h"

namespace lockstep {

struct ResumeRequest {
  std::string from;  // empty: start anew; "auto": the run's newest checkpoint, if there is one; or a path
  bool allow_batch_change = false;  // go on with another global batch
  bool overwrite = false;           // remove the run's checkpoints that lie after the step it starts with
};

// Rank 0. nullopt: the run starts anew. Error: nothing at the path, nothing whole, or a run that would save checkpoints
// among later ones of another.
std::optional<Checkpoint> find_checkpoint(const ResumeRequest& request, const CheckpointFolder& folder, bool will_save);

// Rank 0's text on every rank. Collective.
std::string broadcast_text(const std::string& text, Communicator& communicator);

// Where a run stands, read from a checkpoint's state.
struct RunPosition {
  int64_t step = 0;      // optimizer steps done
  int64_t epoch = 0;     // the epoch to go on with, of whose list
  int64_t position = 0;  // so many positions are consumed
};
// Error: not a position of the plan, or the steps are of another global batch and that isn't allowed.
RunPosition run_position(const State& state, const DataPlan& plan, bool allow_batch_change);
// Optimizer steps of the whole run: those done and what the plan makes of the rest.
int64_t total_steps(const DataPlan& plan, const RunPosition& position);

// "train.epochs: 1 -> 2" for each line of the resolved config that differs; at most `most`.
std::string config_differences(const std::string& before, const std::string& now, size_t most = 12);

}  // namespace lockstep

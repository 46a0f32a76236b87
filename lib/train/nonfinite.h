// What happens when a loss or a gradient is NaN or infinite (train.on_nonfinite). Ranks decide on a reduced value, so
// all of them stop or skip together; the message names the rank, the step and the rows it trained on.
//
// stop  costs nothing in a step: every rank remembers its first bad loss, and all hear of it where losses are reduced
//       anyway (logged steps, ends of epochs).
// skip  needs the answer before every update: one more small all-reduce and one pass over the gradients a step. A
//       skipped step counts as a step, for the log, max_steps and the schedule; parameters, optimizer state and running
//       statistics stay as they were.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/optimizer_ops.h"
#include "comm/communicator.h"
#include "nn/parameter_store.h"

namespace lockstep {

class NonfinitePolicy {
 public:
  enum class Kind { stop, skip, ignore };

  // name: stop | skip | ignore. `rows`: most rows of this rank in one step; memory is made here.
  NonfinitePolicy(const std::string& name, ParameterStore& store, Communicator& communicator, size_t rows);

  Kind kind() const { return kind_; }
  void begin_step();                             // skip: keeps the running statistics
  void add_rows(std::span<const int64_t> rows);  // of a micro-step

  // Local, after the step's last forward pass. `loss` is this rank's sum.
  void observe(int64_t step, double loss);
  // What a rank adds to a sum that is reduced anyway: 1 once it has seen a bad loss.
  double flag() const { return bad_step_ >= 0 ? 1 : 0; }
  // stop: with the reduced flag or loss; collective, and throws on all ranks, where one of them is bad.
  void stop_if_bad(double flags, double loss, int64_t step);

  // skip: collective, after observe and the gradients' reduction. True on all ranks when any rank's loss or the
  // gradient is bad; the statistics are then restored and rank 0 warns. Throws after 100 steps in a row.
  bool skip(int64_t step, const OptimizerOps& ops);
  int64_t skipped() const { return skipped_; }

 private:
  // "rank 1 (rows 3, 4)", for the ranks whose own numbers went bad at the earliest step; sets that step. Collective.
  std::string culprits(int64_t& step);

  static constexpr int64_t most_in_a_row = 100;
  Kind kind_;
  ParameterStore& store_;
  Communicator& communicator_;
  std::vector<int64_t> rows_, bad_rows_;  // of the current step, and of the first bad one
  std::vector<float> statistics_;
  int64_t bad_step_ = -1;
  int64_t skipped_ = 0, in_a_row_ = 0;
};

}  // namespace lockstep

// What happens when a loss or a gradient is NaN or infinite (train.on_nonfinite). Ranks decide on a reduced value, so
// all of them stop or skip together; the message names the rank, the step and the rows it trained on.
//
// stop  costs nothing in a step: every rank remembers its first bad loss, and all hear of it where losses are reduced
//       anyway (logged steps, ends of epochs). Where gradients travel in 16 bits each rank also looks for what
//       overflows there, in one pass over its gradients.
// skip  needs the answer before every update: one more small all-reduce and two passes over the gradients a step, this
//       rank's own and the sum. A skipped step counts as a step, for the log, max_steps and the schedule; parameters,
//       optimizer state and running statistics stay as they were.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/optimizer_ops.h"
#include "comm/communicator.h"
#include "core/state.h"
#include "dist/gradient_watch.h"
#include "nn/parameter_store.h"

namespace lockstep {

class NonfinitePolicy {
 public:
  enum class Kind { stop, skip, ignore };

  // name: stop | skip | ignore. `rows`: most rows of this rank in one step; memory is made here.
  // statistics: the running statistics of all this rank's virtual ranks, which a skipped step must not change.
  NonfinitePolicy(const std::string& name, ParameterStore& store, std::span<float> statistics,
                  Communicator& communicator, size_t rows);

  Kind kind() const { return kind_; }
  // What has to see this rank's gradients before they are summed, made here; null where the policy can do without.
  GradientWatch* watch(const OptimizerOps& ops, WireFormat wire);
  void begin_step(int64_t step);                 // skip: keeps the running statistics
  void add_rows(std::span<const int64_t> rows);  // of a micro-step

  // Local, after the gradients were shown to the watch. `loss` is this rank's sum. The step is the last one that was
  // begun, or the one before.
  void observe(int64_t step, double loss);
  // What a rank adds to a sum that is reduced anyway: 1 once it has seen a bad loss.
  double flag() const { return bad_step_ >= 0 ? 1 : 0; }
  // stop: with the reduced flag or loss; collective, and throws on all ranks, where one of them is bad.
  void stop_if_bad(double flags, double loss, int64_t step);

  // skip: collective, after observe and the gradients' reduction. True on all ranks when any rank's loss or the
  // gradient is bad; the statistics are then restored and rank 0 warns. Throws after 100 steps in a row. overflowed:
  // the gradient's overflow is known and dealt with (train/loss_scaling.h), only losses count.
  bool skip(int64_t step, const OptimizerOps& ops, bool overflowed);
  int64_t skipped() const { return skipped_; }
  State state() const;
  void restore(const State& state);

 private:
  // "the loss is not finite on rank 1 (rows 3, 4), rank 2 (rows 5)", for the ranks whose own numbers went bad at the
  // earliest step (empty: none); sets that step. Collective.
  std::string culprits(int64_t& step);

  static constexpr int64_t most_in_a_row = 100;
  Kind kind_;
  ParameterStore& store_;
  Communicator& communicator_;
  std::vector<int64_t>& rows_of(int64_t step) { return rows_[static_cast<size_t>(step) % rows_.size()]; }
  int64_t step_ = 0;                          // the last one that was begun
  std::array<std::vector<int64_t>, 2> rows_;  // of this step and the one before
  std::vector<int64_t> bad_rows_;             // of the first bad one
  std::span<float> statistics_;
  Buffer kept_statistics_;  // as they were before the step, in the store's memory
  std::optional<GradientWatch> watch_;
  int64_t bad_step_ = -1;
  std::string bad_what_;  // went bad then: "the loss is not finite"
  int64_t skipped_ = 0, in_a_row_ = 0;
};

}  // namespace lockstep

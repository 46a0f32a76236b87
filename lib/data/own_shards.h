// Epochs over data that every rank has for itself, files or seeds of its own: nothing is dealt, so ranks may run out of
// samples at different times. All sizes are known before the first step, and with them who ends when.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

// What happens in an epoch in which ranks run out at different micro-steps.
enum class EarlyEnd : uint8_t {
  join,   // goes on until every rank is through; one that is takes part without samples, as in PyTorch's join()
  stop,   // ends for all ranks after the last micro-step for which every rank has samples
  error,  // such data is refused, as by PyTorch's throw_on_early_termination, but before the first step
};
EarlyEnd parse_early_end(std::string_view text);  // Error: neither join, stop nor error

struct DataPlanSpec;

class OwnShards {
 public:
  // The rest of an epoch of spec.own of which `first` samples (all ranks together) have been consumed. Error: `first`
  // is not the end of a micro-step; early_end error and a rank that runs out before another.
  OwnShards(const DataPlanSpec& spec, int64_t first);

  int64_t micro_steps() const { return micro_steps_; }
  int64_t samples(int64_t rank) const { return left_[static_cast<size_t>(rank)]; }
  // Samples before micro-step m: of a rank, of all ranks (a loop over them).
  int64_t before(int64_t rank, int64_t m) const;
  int64_t before(int64_t m) const;
  bool some_rank_is_empty() const;

 private:
  int64_t world_size() const { return static_cast<int64_t>(left_.size()); }
  int64_t steps_of(int64_t rank) const;  // micro-steps for which the rank has samples
  void skip(int64_t first);
  void refuse_early_end() const;

  std::vector<int64_t> left_;    // samples of each rank
  std::vector<int64_t> usable_;  // those of them that drop_last doesn't leave out
  int64_t batch_size_;
  bool drop_last_;
  int64_t micro_steps_ = 0;
};

}  // namespace lockstep

// What a rank is busy with when it calls a collective: told by those who know (the trainer its step, the synchroniser
// its bucket), named when the collective goes wrong. Telling costs a store or two; text is made only for a message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class Activity {
 public:
  // Everything before the first step: reading data may take long on one rank, so collectives wait this long.
  void prepare(double limit_seconds);
  void step(int64_t step) { word_ = pack(Phase::step, step, -1); }
  void evaluation(int64_t step) { word_ = pack(Phase::evaluation, step, -1); }  // after that step
  // A checkpoint after that step: disks may be slow, so collectives wait as long as in preparation.
  void saving(int64_t step) { word_ = pack(Phase::saving, step, -1); }
  // The reduction of a bucket of the current step's gradients; -1: none.
  void bucket(int64_t index) { word_ = (word_ & ~bucket_mask) | (static_cast<uint64_t>(index + 1) & bucket_mask); }
  int64_t bucket() const { return static_cast<int64_t>(word_ & bucket_mask) - 1; }  // -1: none
  // The first parameter of each bucket; said once.
  void name_buckets(std::vector<std::string> first_parameters) { first_parameters_ = std::move(first_parameters); }

  // Seconds a wait may take: `usual`, except during preparation and saving.
  double limit(double usual) const {
    return phase(word_) == Phase::preparation || phase(word_) == Phase::saving ? preparation_limit_ : usual;
  }
  // All of the above in one word, which travels with a collective; 0: nothing was told.
  uint64_t word() const { return word_; }
  void set_word(uint64_t word) { word_ = word; }
  // "step 3, bucket 1 from 4.weight", of this rank's or another rank's word; empty when nothing was told.
  std::string describe(uint64_t word) const;
  // "stopped with an error in step 3": what others hear of a rank that leaves.
  std::string stopped() const;

 private:
  enum class Phase : uint8_t { untold, preparation, step, evaluation, saving };
  static constexpr int phase_shift = 60, step_shift = 20;
  static constexpr uint64_t bucket_mask = (uint64_t{1} << step_shift) - 1;
  static constexpr uint64_t step_mask = (uint64_t{1} << (phase_shift - step_shift)) - 1;
  static uint64_t pack(Phase phase, int64_t step, int64_t bucket) {
    return (static_cast<uint64_t>(phase) << phase_shift) | ((static_cast<uint64_t>(step) & step_mask) << step_shift) |
           (static_cast<uint64_t>(bucket + 1) & bucket_mask);
  }
  static Phase phase(uint64_t word) { return static_cast<Phase>(word >> phase_shift); }

  uint64_t word_ = 0;
  double preparation_limit_ = 0;
  std::vector<std::string> first_parameters_;
};

}  // namespace lockstep

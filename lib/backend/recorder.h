// Work that a step asks for again and again: recorded once, from then on started as a whole (on a GPU: a CUDA graph).
// Pointers and sizes are those of the recording; what changes from one start to the next is the step's key (dropout)
// and the optimizer's numbers, which a recording reads anew.
#pragma once

#include <cstdint>
#include <memory>

namespace lockstep {

class Recording {
 public:
  virtual ~Recording() = default;
};

class Recorder {
 public:
  virtual ~Recorder() = default;
  // From here to end() whatever is asked of the backend is recorded and not done: nothing may wait for it. Throws Error
  // for what can't be recorded; a recording that was begun then has to be dropped.
  virtual void begin() = 0;
  virtual std::unique_ptr<Recording> end() = 0;
  virtual void drop() noexcept = 0;
  // From here to end_numbers() OptimizerOps do nothing but write down their numbers (the learning rate and all that
  // follows from it and from the step's count) for the next start: the calls must be those of the recording.
  virtual void begin_numbers() = 0;
  virtual void end_numbers() = 0;
  // What was recorded, with the numbers that were written last. Returns when it is queued.
  virtual void start(Recording& recording, uint64_t key) = 0;
};

}  // namespace lockstep

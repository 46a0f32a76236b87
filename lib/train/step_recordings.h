// The recordings of a training: one for each way in which micro-steps differ in what a recording holds for good. The
// first time work is done as ever (libraries then load what they need), the second time it is recorded, and from then
// on started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/recorder.h"

namespace lockstep {

struct RecordedWork {
  const void *graph = nullptr, *output = nullptr;  // the latter moves with the network's arena
  const void *x = nullptr, *targets = nullptr;     // where the batch lies
  double scale = 1;                                // of the loss
  bool accumulate = false, first_loss = true;      // gradients; the sum of the losses
  bool new_parameters = true;
  bool update = false;         // the last micro-step of a window: sums and the update too
  std::optional<size_t> laps;  // of the step so far, where its time is measured
  bool operator==(const RecordedWork&) const = default;
};

class StepRecordings {
 public:
  // recorder outlives this object.
  explicit StepRecordings(Recorder& recorder) : recorder_(recorder) { entries_.reserve(most); }

  // queue: asks for the work. repeat: does on the host what queue does there, and asks for nothing but the optimizer's
  // update. key: of the step's random streams.
  template <class Queue, class Repeat>
  void run(const RecordedWork& work, uint64_t key, const Queue& queue, const Repeat& repeat) {
    Entry* entry = find(work);
    if (entry == nullptr) return queue();
    if (entry->recording == nullptr) {
      entry->recording = record(queue);
    } else {
      recorder_.begin_numbers();
      repeat();
      recorder_.end_numbers();
    }
    recorder_.start(*entry->recording, key);
    ++starts_;
  }

  int64_t starts() const { return starts_; }

 private:
  static constexpr size_t most = 64;  // what comes beyond is done as ever
  struct Entry {
    RecordedWork work;
    std::unique_ptr<Recording> recording;
  };
  // Null: this work is new, or there are too many kinds of it.
  Entry* find(const RecordedWork& work) {
    for (Entry& entry : entries_) {
      if (entry.work == work) return &entry;
    }
    if (entries_.size() < most) entries_.push_back({work, nullptr});
    return nullptr;
  }
  template <class Queue>
  std::unique_ptr<Recording> record(const Queue& queue) {
    recorder_.begin();
    try {
      queue();
    } catch (...) {
      recorder_.drop();
      throw;
    }
    return recorder_.end();
  }

  Recorder& recorder_;
  std::vector<Entry> entries_;
  int64_t starts_ = 0;
};

}  // namespace lockstep

// What streams are asked for between cudaStreamBeginCapture and cudaStreamEndCapture: kept in the order of the calls,
// to be asked for again by every launch of the graph.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/runtime/scheduler.h"

namespace lockstep::sim {

struct Captured {
  enum class Kind { operation, record, wait, external };  // external: records an event for all to see
  Kind kind = Kind::operation;
  int stream = 0;
  std::string name;
  const char* kernel = nullptr;
  Scheduler::Operation operation;
  const EventState* event = nullptr;  // of record and wait; only its address counts
  std::shared_ptr<EventState> seen;   // of external
};

class Capture {
 public:
  explicit Capture(int origin) : origin_(origin) { operations_[origin] = 0; }

  bool knows(const EventState* event) const { return recorded_.contains(event); }
  void add(Captured one);
  // All streams that joined have been joined to the origin again, by a wait for what they did last.
  bool joined() const;
  // Asks for everything once more, in `stream`; what other streams did runs in streams of the graph's own.
  void launch(Scheduler& scheduler, int stream);
  ~Capture();

  bool invalid = false;  // a call was made that a capture does not allow

 private:
  int origin_;
  std::map<int, size_t> operations_;                             // of each stream, so far
  std::map<const EventState*, std::map<int, size_t>> recorded_;  // what an event stands for: operations by stream
  std::map<int, std::map<int, size_t>> behind_;                  // likewise what a stream is behind of
  std::vector<Captured> all_;
  std::map<int, int> streams_;  // of the graph, by captured stream
};

}  // namespace lockstep::sim

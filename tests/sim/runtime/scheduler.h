// Streams as queues, run when the host asks or waits, one operation at a time. Which stream goes first is drawn anew
// now and then: so one stream runs far ahead of another, unless an event holds it back.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "sim/runtime/control.h"

namespace lockstep::sim {

struct EventState {
  uint64_t recorded = 0, completed = 0;  // how often
  uint64_t completed_at = 0;             // after so many operations
  bool timed = false;
  bool captured = false;  // last recorded in a capture: nobody outside may ask for it
  bool done() const { return completed >= recorded; }
};

class Capture;

class Scheduler {
 public:
  static Scheduler& instance();
  std::recursive_mutex& mutex() { return mutex_; }

  // Returns false while it can't end yet; it is then asked again. Device memory is open while it runs, if it says that
  // it reads or writes any: opening takes long.
  using Operation = std::function<bool()>;

  int make_stream();
  void end_stream(int stream);  // what is queued still runs
  bool exists(int stream) const { return streams_.contains(stream); }
  void enqueue(int stream, std::string name, Operation operation, const char* kernel = nullptr);
  void record(int stream, const std::shared_ptr<EventState>& event);
  void wait(int stream, const std::shared_ptr<EventState>& event);
  // From begin_capture on, what a stream is asked for is kept and not queued, and likewise what streams are asked for
  // that wait for its events. Null: the stream captures nothing.
  void begin_capture(int stream);
  Capture* capture_of(int stream) const;
  std::shared_ptr<Capture> end_capture(int stream);
  void spoil_captures();  // a call was made that no capture survives
  // The event was last recorded in a capture that is under way: stream joins it.
  void join(int stream, const EventState& event);

  // Runs one operation of some stream; false when none can end now.
  bool step();
  void host_saw(const EventState& event);
  bool idle() const;
  // Drops what belongs to a communicator that was given up: all operations of that name.
  void drop(const std::string& name);
  void reset(uint64_t seed);
  const std::vector<Traced>& trace() const { return trace_; }
  uint64_t asked() const { return asked_; }
  uint64_t draw(uint64_t below) { return below <= 1 ? 0 : random_() % below; }

 private:
  struct Queued {
    Traced what;
    Operation operation;
    bool uses_memory;
  };
  void push(Traced what, Operation operation, bool uses_memory);
  static bool run(const Queued& queued);
  bool captured(int stream, const EventState* event, bool records);
  void draw_priorities();

  mutable std::recursive_mutex mutex_;
  std::map<int, std::deque<Queued>> streams_;
  std::map<int, uint64_t> priority_;
  std::map<int, bool> ended_;
  std::map<int, std::shared_ptr<Capture>> captures_;  // by stream
  int next_ = 1;
  uint64_t asked_ = 0;
  std::mt19937_64 random_;
  std::vector<Traced> trace_;
};

}  // namespace lockstep::sim

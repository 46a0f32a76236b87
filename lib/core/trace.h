// What a thread did, and when: begin and end of named pieces of work, in memory that was allocated before. Where nobody
// traces, a span costs one branch and records nothing. Who collects the events is train/run_trace.h.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

// What the values of an event mean. step: its number. phase (of a step, or what comes between steps), forward and
// backward (of a layer): none. batch: its samples. gradients (the sum of a bucket over the ranks): bucket, bytes,
// nanoseconds between its launch and its begin. collective: bytes of this rank. wait: none.
enum class TraceKind : uint8_t { step, phase, forward, backward, batch, gradients, collective, wait };

// Nanoseconds of the machine's monotonic clock, the same for all processes of a node.
inline int64_t trace_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

struct TraceEvent {
  std::string_view name;  // of text that outlives the row
  int64_t begin = 0, end = 0;
  std::array<int64_t, 3> values{};
  TraceKind kind = TraceKind::phase;
};

// The events of one thread, in the order of their ends: a row of the picture.
class TraceRow {
 public:
  explicit TraceRow(size_t capacity) : events_(capacity) {}

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void start() { on_.store(true, std::memory_order_relaxed); }
  void stop() { on_.store(false, std::memory_order_relaxed); }
  // Only the thread whose row this is. Where all memory is used the event is lost, and counted.
  void add(const TraceEvent& event) {
    const size_t at = count_.load(std::memory_order_relaxed);
    if (at == events_.size()) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    events_[at] = event;
    count_.store(at + 1, std::memory_order_release);
  }
  // Any thread; what is added later is not among them.
  std::span<const TraceEvent> events() const {
    return std::span(events_).first(count_.load(std::memory_order_acquire));
  }
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  std::vector<TraceEvent> events_;
  std::atomic<size_t> count_{0};
  std::atomic<int64_t> lost_{0};
  std::atomic<bool> on_{false};
};

// From here to the end of the scope. row: of this thread; null: nobody traces.
class TraceSpan {
 public:
  TraceSpan(TraceRow* row, TraceKind kind, std::string_view name, int64_t value = 0) {
    if (row == nullptr || !row->on()) return;
    row_ = row;
    event_ = {.name = name, .begin = trace_now(), .end = 0, .values = {value}, .kind = kind};
  }
  ~TraceSpan() {
    if (row_ == nullptr) return;
    event_.end = trace_now();
    row_->add(event_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceRow* row_ = nullptr;
  TraceEvent event_;
};

}  // namespace lockstep

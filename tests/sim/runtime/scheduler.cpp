#include "sim/runtime/scheduler.h"

#include <algorithm>

#include "sim/runtime/capture.h"
#include "sim/runtime/device_memory.h"

namespace lockstep::sim {
namespace {

constexpr uint64_t steps_of_one_order = 6;  // on average, before priorities are drawn anew
constexpr uint64_t early_step_in = 4;       // an operation in so many runs something as it is queued

}  // namespace

Scheduler& Scheduler::instance() {
  static Scheduler scheduler;
  return scheduler;
}

int Scheduler::make_stream() {
  const int stream = next_++;
  streams_[stream];
  draw_priorities();
  return stream;
}

void Scheduler::end_stream(int stream) {
  ended_[stream] = true;
  if (streams_[stream].empty()) streams_.erase(stream);
}

void Scheduler::push(Traced what, Operation operation, bool uses_memory) {
  what.asked = asked_++;
  streams_.at(what.stream).push_back({std::move(what), std::move(operation), uses_memory});
  if (draw(early_step_in) == 0) step();
}

void Scheduler::begin_capture(int stream) { captures_[stream] = std::make_shared<Capture>(stream); }

Capture* Scheduler::capture_of(int stream) const {
  const auto found = captures_.find(stream);
  return found == captures_.end() ? nullptr : found->second.get();
}

std::shared_ptr<Capture> Scheduler::end_capture(int stream) {
  std::shared_ptr<Capture> ended = captures_.at(stream);
  std::erase_if(captures_, [&](const auto& one) { return one.second == ended; });
  return ended;
}

void Scheduler::spoil_captures() {
  for (const auto& [stream, capture] : captures_) capture->invalid = true;
}

void Scheduler::join(int stream, const EventState& event) {
  for (const auto& [captured, capture] : captures_) {
    if (!capture->knows(&event)) continue;
    captures_[stream] = capture;
    return;
  }
}

// False: the stream captures nothing.
bool Scheduler::captured(int stream, const EventState* event, bool records) {
  Capture* capture = capture_of(stream);
  if (capture == nullptr) return false;
  capture->add({.kind = records ? Captured::Kind::record : Captured::Kind::wait, .stream = stream, .event = event});
  return true;
}

void Scheduler::enqueue(int stream, std::string name, Operation operation, const char* kernel) {
  if (Capture* capture = capture_of(stream)) {
    capture->add({.stream = stream, .name = std::move(name), .kernel = kernel, .operation = std::move(operation)});
    return;
  }
  push({.stream = stream, .operation = std::move(name), .kernel = kernel}, std::move(operation), true);
}

void Scheduler::record(int stream, const std::shared_ptr<EventState>& event) {
  event->captured = captured(stream, event.get(), true);
  if (event->captured) return;
  const uint64_t count = ++event->recorded;
  const auto complete = [this, event, count] {
    event->completed = std::max(event->completed, count);
    event->completed_at = trace_.size();
    return true;
  };
  push({.stream = stream, .operation = "record", .event = event.get(), .recorded = count}, complete, false);
}

// What is recorded later does not count.
void Scheduler::wait(int stream, const std::shared_ptr<EventState>& event) {
  if (captured(stream, event.get(), false)) return;
  const uint64_t count = event->recorded;
  push(
      {.stream = stream, .operation = "wait", .event = event.get(), .recorded = count},
      [event, count] { return event->completed >= count; }, false);
}

void Scheduler::host_saw(const EventState& event) {
  trace_.push_back({.operation = "wait", .asked = asked_++, .event = &event, .recorded = event.recorded});
}

void Scheduler::draw_priorities() {
  for (const auto& [stream, queue] : streams_) priority_[stream] = random_();
}

bool Scheduler::run(const Queued& queued) {
  if (!queued.uses_memory) return queued.operation();
  const DeviceMemory::Open open;
  return queued.operation();
}

bool Scheduler::step() {
  if (draw(steps_of_one_order) == 0) draw_priorities();
  std::vector<int> order;
  for (const auto& [stream, queue] : streams_)
    if (!queue.empty()) order.push_back(stream);
  std::ranges::sort(order, {}, [&](int stream) { return priority_[stream]; });
  for (const int stream : order) {
    auto& queue = streams_.at(stream);
    if (!run(queue.front())) continue;
    trace_.push_back(queue.front().what);
    queue.pop_front();
    if (queue.empty() && ended_[stream]) streams_.erase(stream);
    return true;
  }
  return false;
}

bool Scheduler::idle() const {
  return std::ranges::all_of(streams_, [](const auto& stream) { return stream.second.empty(); });
}

void Scheduler::drop(const std::string& name) {
  for (auto& [stream, queue] : streams_)
    std::erase_if(queue, [&](const Queued& one) { return one.what.operation == name; });
}

void Scheduler::reset(uint64_t seed) {
  streams_.clear(), priority_.clear(), ended_.clear(), captures_.clear(), trace_.clear();
  asked_ = 0;
  random_.seed(seed);
}

std::vector<Traced> trace() {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  return Scheduler::instance().trace();
}

uint64_t asked_for() {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  return Scheduler::instance().asked();
}

}  // namespace lockstep::sim

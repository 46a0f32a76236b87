#include "sim/runtime/capture.h"

#include <algorithm>

namespace lockstep::sim {

void Capture::add(Captured one) {
  std::map<int, size_t>& behind = behind_[one.stream];
  if (one.kind == Captured::Kind::operation) {
    behind[one.stream] = ++operations_[one.stream];
  } else if (one.kind == Captured::Kind::record) {
    recorded_[one.event] = behind;
  } else if (one.kind == Captured::Kind::wait) {
    operations_[one.stream];
    for (const auto& [stream, operations] : recorded_.at(one.event))
      behind[stream] = std::max(behind[stream], operations);
  }
  all_.push_back(std::move(one));
}

bool Capture::joined() const {
  const auto origin = behind_.find(origin_);
  return std::ranges::all_of(operations_, [&](const auto& end) {
    if (end.first == origin_ || end.second == 0) return true;
    if (origin == behind_.end()) return false;
    const auto found = origin->second.find(end.first);
    return found != origin->second.end() && found->second == end.second;
  });
}

void Capture::launch(Scheduler& scheduler, int stream) {
  std::map<const EventState*, std::shared_ptr<EventState>> events;
  for (const Captured& one : all_) {
    int runs_in = stream;
    if (one.stream != origin_) {
      if (!streams_.contains(one.stream)) streams_[one.stream] = scheduler.make_stream();
      runs_in = streams_[one.stream];
    }
    if (one.kind == Captured::Kind::operation) {
      scheduler.enqueue(runs_in, one.name, one.operation, one.kernel);
    } else if (one.kind == Captured::Kind::record) {
      events[one.event] = std::make_shared<EventState>();
      scheduler.record(runs_in, events[one.event]);
    } else if (one.kind == Captured::Kind::external) {
      scheduler.record(runs_in, one.seen);
    } else {
      scheduler.wait(runs_in, events[one.event]);
    }
  }
}

Capture::~Capture() {
  for (const auto& [captured, stream] : streams_)
    if (Scheduler::instance().exists(stream)) Scheduler::instance().end_stream(stream);
}

}  // namespace lockstep::sim

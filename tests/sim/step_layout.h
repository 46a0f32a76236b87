// When what a simulated GPU was asked for would run on one that begins everything as early as it may: from the trace,
// with made-up durations. What waits for what is the trace's; only the lengths are not.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/runtime/control.h"

namespace lockstep::test {

// Row 0 is the host; the others are streams.
struct Box {
  int row = 0;
  double from = 0, to = 0;
  std::string kind;  // forward, loss, backward, update, copy, sum; of the host: asks, waits
};
struct Arrow {  // an event: what waits at the second place, for what has come to the first
  int from_row = 0, to_row = 0;
  double from = 0, to = 0;
};
struct StepLayout {
  std::vector<Box> boxes;
  std::vector<Arrow> arrows;
  std::vector<double> asked_at;  // the host's time, by sim::Traced::asked
};

class StepLayouter {
 public:
  // rows: of each stream that is drawn; what others do takes no place.
  explicit StepLayouter(std::map<int, int> rows) : rows_(std::move(rows)) {}

  StepLayout lay_out(std::vector<sim::Traced> trace) {
    std::ranges::sort(trace, {}, &sim::Traced::asked);
    for (const sim::Traced& one : trace) {
      layout_.asked_at.resize(one.asked + 1, host_);
      if (one.stream == 0) {
        host_waits(one);
      } else if (rows_.contains(one.stream)) {
        stream_runs(one);
      }
    }
    return std::move(layout_);
  }

 private:
  struct Happened {
    double at = 0;
    int row = 0;
  };
  static constexpr double to_ask = 0.4, shortest_wait = 0.01;

  static double duration(const sim::Traced& one, int row) {
    if (one.operation == "convolution") return 6;
    if (one.operation == "matmul") return 4;
    if (one.operation.starts_with("all_reduce")) return 10;
    if (one.operation == "copy") return row == 1 ? 1 : 8;  // of a batch, or of a few numbers
    return 2;
  }

  // Backward is what comes after the loss, forward what comes after the update.
  std::string kind(const sim::Traced& one) {
    if (one.operation.starts_with("all_reduce")) return "sum";
    if (one.operation == "copy") return "copy";
    const std::string kernel = one.kernel == nullptr ? "" : one.kernel;
    const auto is = [&](const char* name) { return kernel.find(name) != std::string::npos; };
    if (is("CrossEntropy")) return phase_ = "loss";
    if (is("AddToTotal")) return phase_ = "backward", "loss";
    if (is("Update")) return phase_ = "forward", "update";
    return phase_;
  }

  void add_box(int row, double from, double to, const std::string& kind) {
    // The host asks for one thing after another: one box until it waits.
    if (row == 0 && !layout_.boxes.empty()) {
      const auto last = std::ranges::find(layout_.boxes.rbegin(), layout_.boxes.rend(), 0, &Box::row);
      if (last != layout_.boxes.rend() && last->kind == kind && last->to >= from) {
        last->to = to;
        return;
      }
    }
    layout_.boxes.push_back({row, from, to, kind});
  }

  void host_waits(const sim::Traced& one) {
    const auto found = happened_.find({one.event, one.recorded});
    if (found == happened_.end() || found->second.at < host_ + shortest_wait) return;
    add_box(0, host_, found->second.at, "waits");
    layout_.arrows.push_back({found->second.row, 0, found->second.at, found->second.at});
    host_ = found->second.at;
  }

  void stream_runs(const sim::Traced& one) {
    const int row = rows_.at(one.stream);
    add_box(0, host_, host_ + to_ask, "asks");
    host_ += to_ask;
    double& free = free_[one.stream];
    free = std::max(free, host_);
    if (one.operation == "record") {
      happened_[{one.event, one.recorded}] = {free, row};
    } else if (one.operation == "wait") {
      const auto found = happened_.find({one.event, one.recorded});
      if (found == happened_.end()) return;  // of an event that was not recorded yet: no wait
      free = std::max(free, found->second.at);
      if (found->second.row != row) layout_.arrows.push_back({found->second.row, row, found->second.at, free});
    } else {
      const double end = free + duration(one, row);
      add_box(row, free, end, kind(one));
      free = end;
    }
  }

  std::map<int, int> rows_;
  std::map<int, double> free_;
  std::map<std::pair<const void*, uint64_t>, Happened> happened_;
  double host_ = 0;
  std::string phase_ = "forward";
  StepLayout layout_;
};

}  // namespace lockstep::test

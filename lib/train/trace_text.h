// Events of a rank in the Trace Event Format, which Perfetto and chrome://tracing show: a process per rank, a thread
// per row. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/trace.h"

namespace lockstep {

struct TracedRow {
  std::string_view name;  // "compute"
  std::span<const TraceEvent> events;
};

struct TracedRank {
  int rank = 0;
  std::string host;
  int64_t shift =
      0;  // nanoseconds to add to the events' times: to have rank 0's clock, from the beginning of the trace
  std::string clock;  // what there is to say of it; empty: nothing
};

// Elements of a JSON list, a line each, separated but not ended by ",\n": names of process and rows, then the events of
// each row in the order of their begins, outer ones before those that they hold.
std::string trace_text(const TracedRank& rank, std::span<const TracedRow> rows);

// What stands before the elements of all ranks, and behind them. about: texts by name, for who opens the file later.
std::string trace_head();
std::string trace_tail(std::span<const std::pair<std::string, std::string>> about);

}  // namespace lockstep

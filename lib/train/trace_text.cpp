#include "train/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep {
namespace {

// Names come from a config: any bytes.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

std::string_view category(TraceKind kind) {
  switch (kind) {
    case TraceKind::step: return "step";
    case TraceKind::phase: return "phase";
    case TraceKind::forward: return "forward";
    case TraceKind::backward: return "backward";
    case TraceKind::batch: return "batch";
    case TraceKind::gradients: return "gradients";
    case TraceKind::collective: return "collective";
    case TraceKind::wait: return "wait";
  }
  return "";
}

std::string name_of(const TraceEvent& event) {
  if (event.kind == TraceKind::step) return fmt::format("step {}", event.values[0]);
  if (event.kind == TraceKind::gradients) return fmt::format("{} bucket {}", event.name, event.values[0]);
  return std::string(event.name);
}

std::string arguments(const TraceEvent& event) {
  const auto& values = event.values;
  switch (event.kind) {
    case TraceKind::step: return fmt::format(R"({{"step":{}}})", values[0]);
    case TraceKind::batch: return fmt::format(R"({{"samples":{}}})", values[0]);
    case TraceKind::collective: return fmt::format(R"({{"bytes":{}}})", values[0]);
    case TraceKind::gradients:
      return fmt::format(R"({{"bucket":{},"bytes":{},"queued_us":{:.3f}}})", values[0], values[1],
                         microseconds(values[2]));
    default: return "{}";
  }
}

// What a process or a thread is called.
void add_fact(std::string& text, int rank, int thread, std::string_view fact, std::string_view argument,
              const std::string& value) {
  if (!text.empty()) text += ",\n";
  fmt::format_to(std::back_inserter(text), R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"{}":{}}}}})", rank,
                 thread, fact, argument, value);
}

std::vector<TraceEvent> in_order(std::span<const TraceEvent> events) {
  std::vector<TraceEvent> sorted(events.begin(), events.end());
  // Of two with the same times the one that ended later holds the other, and was added later.
  std::ranges::reverse(sorted);
  std::ranges::stable_sort(sorted, [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return sorted;
}

}  // namespace

std::string trace_text(const TracedRank& rank, std::span<const TracedRow> rows) {
  std::string text;
  // A thread has a number of its own in the whole file, and none is its process's: viewers make much of such a one.
  int thread = 10 * (rank.rank + 1);
  add_fact(text, rank.rank, thread, "process_name", "name",
           json_text(fmt::format("rank {} on {}", rank.rank, rank.host)));
  add_fact(text, rank.rank, thread, "process_sort_index", "sort_index", fmt::format("{}", rank.rank));
  if (!rank.clock.empty()) add_fact(text, rank.rank, thread, "process_labels", "labels", json_text(rank.clock));
  for (size_t row = 0; row < rows.size(); ++row, ++thread) {
    add_fact(text, rank.rank, thread, "thread_name", "name", json_text(rows[row].name));
    add_fact(text, rank.rank, thread, "thread_sort_index", "sort_index", fmt::format("{}", row));
    for (const TraceEvent& event : in_order(rows[row].events)) {
      fmt::format_to(std::back_inserter(text),
                     ",\n"
                     R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"cat":"{}","name":{},"args":{}}})",
                     rank.rank, thread, microseconds(event.begin + rank.shift), microseconds(event.end - event.begin),
                     category(event.kind), json_text(name_of(event)), arguments(event));
    }
  }
  return text;
}

std::string trace_head() { return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"; }

std::string trace_tail(std::span<const std::pair<std::string, std::string>> about) {
  nlohmann::json facts = nlohmann::json::object();
  for (const auto& [name, value] : about) facts[name] = value;
  return "\n], \"otherData\": " + facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "}\n";
}

}  // namespace lockstep

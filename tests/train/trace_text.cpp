// The file of a trace is JSON as Perfetto and chrome://tracing want it, whatever the layers are called.
#include "train/trace_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

using namespace lockstep;
using nlohmann::json;

namespace {

// Ranks 0 and 1 with the same events, the second in another clock.
json file(const std::vector<TraceEvent>& compute, const std::vector<TraceEvent>& communication) {
  const TracedRow rows[] = {{"compute", compute}, {"communication", communication}};
  const std::pair<std::string, std::string> about[] = {{"steps", "3 to 4"}};
  return json::parse(trace_head() + trace_text({.rank = 0, .host = "node1", .shift = 0, .clock = ""}, rows) + ",\n" +
                     trace_text({.rank = 1, .host = "node2", .shift = -500, .clock = "within 2 us"}, rows) +
                     trace_tail(about));
}

json found(const json& trace, const std::string& name, int pid) {
  for (const json& event : trace["traceEvents"])
    if (event["name"] == name && event["pid"] == pid) return event;
  return nullptr;
}

}  // namespace

TEST_CASE("a trace has a process per rank and a named thread per row") {
  const json trace = file({}, {});
  for (const int rank : {0, 1}) {
    CHECK(found(trace, "process_name", rank)["args"]["name"] ==
          "rank " + std::to_string(rank) + " on node" + std::to_string(rank + 1));
    CHECK(found(trace, "process_sort_index", rank)["args"]["sort_index"] == rank);
  }
  std::vector<std::string> threads;
  std::set<int> numbers;
  for (const json& event : trace["traceEvents"]) {
    CHECK(event["ph"] == "M");
    if (event["name"] != "thread_name") continue;
    threads.push_back(event["args"]["name"]);
    CHECK(numbers.insert(event["tid"].get<int>()).second);
  }
  CHECK(threads == std::vector<std::string>{"compute", "communication", "compute", "communication"});
  CHECK(found(trace, "process_labels", 0) == nullptr);
  CHECK(found(trace, "process_labels", 1)["args"]["labels"] == "within 2 us");
  CHECK(trace["otherData"]["steps"] == "3 to 4");
}

TEST_CASE("events have times in microseconds of one clock and what they hold as arguments") {
  const json trace =
      file({{.name = "step", .begin = 2500, .end = 1002500, .values = {12}, .kind = TraceKind::step},
            {.name = "batch", .begin = 3000, .end = 3001, .values = {64}, .kind = TraceKind::batch}},
           {{.name = "all_reduce", .begin = 4000, .end = 9000, .values = {3, 4096, 250}, .kind = TraceKind::gradients},
            {.name = "barrier", .begin = 9000, .end = 9500, .values = {8}, .kind = TraceKind::collective}});
  const json step = found(trace, "step 12", 0), late = found(trace, "step 12", 1);
  CHECK(step["ph"] == "X");
  CHECK(step["cat"] == "step");
  CHECK(step["ts"] == 2.5);
  CHECK(step["dur"] == 1000.0);
  CHECK(step["args"]["step"] == 12);
  CHECK(late["ts"] == 2.0);
  CHECK(late["tid"] != step["tid"]);
  CHECK(found(trace, "batch", 0)["args"]["samples"] == 64);
  CHECK(found(trace, "batch", 0)["dur"] == 0.001);
  const json sum = found(trace, "all_reduce bucket 3", 0);
  CHECK(sum["cat"] == "gradients");
  CHECK(sum["args"] == json{{"bucket", 3}, {"bytes", 4096}, {"queued_us", 0.25}});
  CHECK(found(trace, "barrier", 1)["args"]["bytes"] == 8);
}

TEST_CASE("events are ordered by their begins and those that hold others come first") {
  // As rows have them: by their ends.
  const json trace = file({{.name = "layer", .begin = 10, .end = 20},
                           {.name = "forward", .begin = 10, .end = 20},
                           {.name = "step", .begin = 5, .end = 20},
                           {.name = "next", .begin = 20, .end = 20}},
                          {});
  std::vector<std::string> names;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["pid"] == 0) names.push_back(event["name"]);
  CHECK(names == std::vector<std::string>{"step", "forward", "layer", "next"});
}

TEST_CASE("names of any bytes leave the file whole") {
  const std::string name = "a \"layer\"\\\n\xff{}";
  const json trace = file({{.name = name, .begin = 0, .end = 1, .values = {}, .kind = TraceKind::forward}}, {});
  CHECK(found(trace, "a \"layer\"\\\n\xef\xbf\xbd{}", 0)["cat"] == "forward");
}

// What spans write down, and what becomes of it where there is no room, or another thread looks.
#include "core/trace.h"

#include <doctest/doctest.h>

#include <thread>

using namespace lockstep;

TEST_CASE("a span is written down with begin and end once the row is on") {
  TraceRow row(8);
  { const TraceSpan off(&row, TraceKind::phase, "off"); }
  { const TraceSpan nowhere(nullptr, TraceKind::phase, "nowhere"); }
  CHECK(row.events().empty());
  const int64_t before = trace_now();
  row.start();
  {
    const TraceSpan outer(&row, TraceKind::step, "outer", 7);
    const TraceSpan inner(&row, TraceKind::forward, "inner");
  }
  row.stop();
  { const TraceSpan later(&row, TraceKind::phase, "later"); }
  const auto events = row.events();
  REQUIRE(events.size() == 2);
  CHECK(events[0].name == "inner");
  CHECK(events[1].name == "outer");
  CHECK(events[1].kind == TraceKind::step);
  CHECK(events[1].values[0] == 7);
  CHECK(events[1].begin >= before);
  CHECK(events[1].begin <= events[0].begin);
  CHECK(events[0].begin <= events[0].end);
  CHECK(events[0].end <= events[1].end);
}

TEST_CASE("a span that began while the row was on is written down though it ends later") {
  TraceRow row(8);
  row.start();
  {
    const TraceSpan span(&row, TraceKind::phase, "long");
    row.stop();
  }
  CHECK(row.events().size() == 1);
}

TEST_CASE("a full row keeps its first events and counts those that it loses") {
  TraceRow row(3);
  row.start();
  for (int i = 0; i < 10; ++i) const TraceSpan span(&row, TraceKind::step, "step", i);
  REQUIRE(row.events().size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(row.events()[static_cast<size_t>(i)].values[0] == i);
  CHECK(row.lost() == 7);
}

TEST_CASE("events are whole for a thread that looks while they are added") {
  constexpr int64_t kMany = 20000;
  TraceRow row(kMany);
  row.start();
  std::thread writer([&] {
    for (int64_t i = 0; i < kMany; ++i)
      row.add({.name = "event", .begin = i, .end = 2 * i, .values = {i, i, i}, .kind = TraceKind::batch});
  });
  int64_t wrong = 0, last = 0;
  for (size_t seen = 0; seen < kMany;) {
    const auto events = row.events();
    for (; seen < events.size(); ++seen, ++last)
      wrong += events[seen].begin != last || events[seen].end != 2 * last || events[seen].values[2] != last;
  }
  writer.join();
  CHECK(wrong == 0);
}

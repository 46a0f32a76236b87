// One time for ranks whose clocks are apart: what meetings say of it is never wrong, and close.
#include "comm/clock_offset.h"

#include <doctest/doctest.h>

#include "core/trace.h"
#include "support/thread_ranks.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("meetings bound the difference of two clocks from both sides") {
  // This rank's clock is 1000 behind. It enters at rank 0's 100, which leaves at 130; rank 0 enters at 90, it leaves at
  // 125.
  ClockBounds bounds;
  bounds.meet(90, 130, 100 - 1000, 125 - 1000);
  CHECK(bounds.low == 90 + 1000 - 125);
  CHECK(bounds.high == 130 - 100 + 1000);
  bounds.meet(200, 212, 201 - 1000, 210 - 1000);
  CHECK(bounds.low == 990);
  CHECK(bounds.high == 1011);
  CHECK(bounds.middle() == ClockOffset{1000, 10});
  bounds.meet(ClockBounds{998, 1004});
  CHECK(bounds.middle() == ClockOffset{1001, 3});
}

TEST_CASE("clocks that drift so far that meetings contradict each other are off by that much") {
  const ClockBounds crossed{50, 40};
  CHECK(crossed.middle() == ClockOffset{45, 5});
}

TEST_CASE("ranks of three nodes find how far their clocks are from rank 0" * doctest::timeout(60)) {
  const int64_t ahead[] = {0, 0, 7'000'000'000'123, 7'000'000'000'123, -86'400'000'000'000, -86'400'000'000'000};
  const std::string node[] = {"a", "a", "b", "b", "c", "c"};
  std::vector<ClockOffset> found(6);
  const auto errors = run_ranks(6, [&](Communicator& ranks) {
    const auto rank = static_cast<size_t>(ranks.rank());
    found[rank] = align_clocks(
        ranks, [&] { return trace_now() + ahead[rank]; }, node[rank]);
  });
  for (const std::string& error : errors) CHECK(error.empty());
  for (size_t rank = 0; rank < 6; ++rank) {
    CAPTURE(rank);
    const int64_t wrong = found[rank].offset + ahead[rank];
    CHECK(std::abs(wrong) <= found[rank].error);
    CHECK(found[rank].error < 100'000'000);  // a tenth of a second, on however busy a machine
    if (node[rank] == "a") CHECK(found[rank] == ClockOffset{});
  }
  CHECK(found[2] == found[3]);
  CHECK(found[4] == found[5]);
}

TEST_CASE("processes of one machine name the same clock") {
  CHECK(monotonic_clock() == monotonic_clock());
  CHECK(monotonic_clock().size() > 30);
}

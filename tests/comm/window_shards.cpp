// Shards of two windows, one summed and one stored to, with ranks as threads so that the thread sanitizer sees every
// access.
#include "comm/shm/window_shards.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "team.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr size_t kHalf = 10'007;  // floats of each array, from cache lines on; not a whole number of lines
constexpr size_t kSecond = 10'240;

// Terms and results in one window of the team, as arrays may lie anywhere in one.
struct Arrays {
  std::span<float> terms, results;
  Arrays(const Team& team, int rank) : terms(team.copy(rank), kHalf), results(team.copy(rank) + kSecond, kHalf) {}
};

WindowShards shards_of(SharedReduction& comm, const Team& team, int rank) {
  return WindowShards(comm.meeting(), [&team, rank](std::span<const float> values) {
    return team.window.holds(rank, values) ? &team.window : nullptr;
  });
}

}  // namespace

TEST_CASE("each rank's shard of the sums reaches every copy, with the bits of the tree" * doctest::timeout(120)) {
  for (const int ranks : {1, 2, 3, 5, 9}) {
    CAPTURE(ranks);
    Team team(ranks, kSecond + kHalf);
    std::vector<size_t> wrong(ranks);
    const auto errors = team.run([&](SharedReduction& comm, int rank) {
      const Arrays arrays(team, rank);
      WindowShards shards = shards_of(comm, team, rank);
      const Shard mine = shards.of(kHalf, rank);
      for (int round = 0; round < 25; ++round) {
        fill(arrays.terms.data(), kHalf, rank, round);
        if ((rank + round) % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        shards.begin(arrays.terms);
        for (size_t done = 0; done < mine.count;) {
          const size_t count = std::min<size_t>(mine.count - done, 1000);
          const auto out = arrays.results.subspan(mine.first + done, count);
          shards.sum(mine.first + done, out);
          shards.store(out);
          done += count;
        }
        shards.end();
        wrong[rank] += wrong_values(arrays.results.data(), kHalf, ranks, round);
        if (round % 5 == 0) comm.barrier();  // other collectives go on between
      }
    });
    CHECK(all_well(errors));
    CHECK(wrong == std::vector<size_t>(ranks, 0));
  }
}

TEST_CASE("shards are whole cache lines, in order, and all of an array") {
  Team team(5);
  const auto errors = team.run([&](SharedReduction& comm, int rank) {
    const WindowShards shards = shards_of(comm, team, rank);
    for (const size_t count : {0, 1, 16, 17, 79, 80, 81, 10'007}) {
      size_t next = 0;
      for (int r = 0; r < 5; ++r) {
        const Shard shard = shards.of(count, r);
        if (shard.first != next || (shard.first % 16 != 0 && shard.count > 0)) throw Error("a gap");
        next = shard.first + shard.count;
      }
      if (next != count) throw Error("not all");
    }
  });
  CHECK(all_well(errors));
}

TEST_CASE("an array that others do not reach is an error, and a rank elsewhere is named") {
  Team team(2);
  std::vector<float> elsewhere(100);
  const auto refused = team.run([&](SharedReduction& comm, int rank) {
    WindowShards shards = shards_of(comm, team, rank);
    if (shards.reach(elsewhere) || !shards.reach(Arrays(team, rank).terms.first(100))) throw Error("wrong answer");
    shards.begin(elsewhere);
  });
  for (const std::string& error : refused) CHECK(error == "shards: an array of 100 floats lies in no window");

  Team other(2);
  const auto errors = other.run(
      [&](SharedReduction& comm, int rank) {
        WindowShards shards = shards_of(comm, other, rank);
        rank == 0 ? shards.begin(Arrays(other, rank).terms.first(100)) : comm.barrier();
      },
      20);
  for (const std::string& error : errors) {
    CAPTURE(error);
    CHECK(error.find("sharded_sum of 100") != std::string::npos);
    CHECK(error.find("barrier") != std::string::npos);
  }
}

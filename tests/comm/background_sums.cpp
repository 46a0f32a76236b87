// Sums that are started early and finished late, with ranks as threads so that the thread sanitizer sees every access.
#include "comm/shm/background_sums.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "team.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr size_t kBucket = 1001;  // floats, so that buckets share cache lines

void pause(int rank, int round, size_t bucket) {
  if ((static_cast<size_t>(rank) + static_cast<size_t>(round) + bucket) % 3 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace

TEST_CASE("buckets started one after another by late and early ranks have the bits of the tree" *
          doctest::timeout(120)) {
  constexpr size_t buckets = 12;
  for (const int ranks : {1, 2, 3, 5, 9}) {
    Team team(ranks, buckets * kBucket);
    std::vector<size_t> wrong(ranks);
    const auto errors = team.run([&](SharedReduction& comm, int rank) {
      for (int round = 0; round < 30; ++round) {
        float* mine = team.copy(rank);
        for (size_t bucket = 0; bucket < buckets; ++bucket) {
          pause(rank, round, bucket);
          fill(mine + bucket * kBucket, kBucket, rank, round);
          comm.background().start(team.window, bucket * kBucket, kBucket);
          if (round % 2 == 0) comm.background().poll();
        }
        comm.background().finish();
        for (size_t bucket = 0; bucket < buckets; ++bucket)
          wrong[rank] += wrong_values(mine + bucket * kBucket, kBucket, ranks, round);
        if (round % 4 == 0) comm.barrier();  // other collectives go on between
      }
    });
    CHECK(all_well(errors));
    CHECK(wrong == std::vector<size_t>(ranks, 0));
  }
}

TEST_CASE("more sums than can be in flight are all done" * doctest::timeout(60)) {
  constexpr size_t buckets = 3 * SumsLine::in_flight + 5;
  Team team(2, buckets * 16);
  std::vector<size_t> wrong(2);
  const auto errors = team.run([&](SharedReduction& comm, int rank) {
    for (size_t bucket = 0; bucket < buckets; ++bucket) {
      fill(team.copy(rank) + bucket * 16, 16, rank, 7);
      comm.background().start(team.window, bucket * 16, 16);
    }
    comm.background().finish();
    for (size_t bucket = 0; bucket < buckets; ++bucket)
      wrong[rank] += wrong_values(team.copy(rank) + bucket * 16, 16, 2, 7);
  });
  CHECK(all_well(errors));
  CHECK(wrong == std::vector<size_t>(2, 0));
}

TEST_CASE("whoever comes last sums without anyone waiting" * doctest::timeout(60)) {
  Team team(2);
  std::vector<size_t> wrong(2);
  std::atomic<int> stage{0};
  const auto reach = [&](int wanted) {
    while (stage.load() < wanted) std::this_thread::yield();
  };
  const auto errors = team.run([&](SharedReduction& comm, int rank) {
    fill(team.copy(rank), 4000, rank, 1);
    if (rank == 1) reach(1);
    comm.background().start(team.window, 0, 4000);
    comm.background().poll();  // rank 0 comes first: nothing to do yet, and it does not wait
    stage = rank == 0 ? 1 : 2;
    reach(2);
    if (rank == 0) comm.background().poll(), stage = 3;
    reach(3);
    wrong[rank] = wrong_values(team.copy(rank), 4000, 2, 1);  // both halves are done before anybody finishes
    comm.background().finish();
  });
  CHECK(all_well(errors));
  CHECK(wrong == std::vector<size_t>(2, 0));
}

TEST_CASE("ranks that start different sums are told both" * doctest::timeout(60)) {
  Team team(2);
  const auto errors = team.run([&](SharedReduction& comm, int rank) {
    comm.background().start(team.window, 0, 100);
    comm.background().start(team.window, 112, rank == 0 ? 50 : 60);
    comm.background().finish();
  });
  for (const auto& error : errors) {
    CHECK(error.find("differs between ranks") != std::string::npos);
    CHECK(error.find("all_reduce_sum of 50") != std::string::npos);
    CHECK(error.find("all_reduce_sum of 60") != std::string::npos);
  }
}

TEST_CASE("a rank that never starts its sum is named after the time limit" * doctest::timeout(60)) {
  Team team(3);
  const auto errors = team.run(
      [&](SharedReduction& comm, int rank) {
        if (rank == 1) return;
        comm.background().start(team.window, 0, 100);
        comm.background().finish();
      },
      0.5);
  for (const int rank : {0, 2})
    CHECK(errors[rank].find("waited 0.5 s in all_reduce_sum #1 for rank 1") != std::string::npos);
}

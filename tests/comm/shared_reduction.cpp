// The shared-memory collectives with ranks as threads of one process, so that the thread sanitizer sees every access.
#include "comm/shm/shared_reduction.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "team.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("sums have the bits of the tree wherever the array lies" * doctest::timeout(120)) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    Team team(ranks);
    std::vector<size_t> wrong(ranks);
    const auto errors = team.run([&](SharedReduction& comm, int rank) {
      int round = 0;
      for (const size_t count : {0, 1, 3, 1000, 4096, 4097, 19000}) {
        for (const size_t first : {0, 3, 16, 777}) {
          fill(team.copy(rank) + first, count, rank, ++round);
          comm.all_reduce_sum(team.window, first, count);
          wrong[rank] += wrong_values(team.copy(rank) + first, count, ranks, round);
        }
        std::vector<float> values(count);
        fill(values.data(), count, rank, ++round);
        comm.all_reduce_sum(values);
        wrong[rank] += wrong_values(values.data(), count, ranks, round);
      }
    });
    CHECK(all_well(errors));
    CHECK(wrong == std::vector<size_t>(ranks, 0));
  }
}

TEST_CASE("an array longer than the staging goes through in rounds" * doctest::timeout(120)) {
  const size_t count = SharedReduction::staging_bytes / sizeof(float) * 2 + 77;
  std::vector<size_t> wrong(3);
  const auto errors = Team(3).run([&](SharedReduction& comm, int rank) {
    std::vector<float> values(count);
    fill(values.data(), count, rank, 1);
    comm.all_reduce_sum(values);
    wrong[rank] = wrong_values(values.data(), count, 3, 1);
  });
  CHECK(all_well(errors));
  CHECK(wrong == std::vector<size_t>(3, 0));
}

TEST_CASE("collectives of all kinds follow one another in any order" * doctest::timeout(120)) {
  const int ranks = 4;
  Team team(ranks);
  std::vector<size_t> wrong(ranks);
  const auto errors = team.run([&](SharedReduction& comm, int rank) {
    for (int round = 0; round < 60; ++round) {
      const size_t count = round % 2 == 0 ? 100 : 6000;
      fill(team.copy(rank), count, rank, round);
      comm.all_reduce_sum(team.window, 0, count);
      wrong[rank] += wrong_values(team.copy(rank), count, ranks, round);

      std::vector<double> numbers(3000, rank + round);
      const ReduceOp op = static_cast<ReduceOp>(round % 3);
      comm.all_reduce(numbers, op);
      const double expected = op == ReduceOp::sum ? 6 + 4 * round : op == ReduceOp::min ? round : round + 3;
      for (const double number : numbers) wrong[rank] += number != expected;

      std::vector<std::byte> bytes(round % 4 == 0 ? 300000 : 5, std::byte(rank));
      comm.broadcast(bytes, round % ranks);
      for (const std::byte byte : bytes) wrong[rank] += byte != std::byte(round % ranks);

      const std::vector<std::byte> mine(static_cast<size_t>(rank) * 1000 + (rank == 2 ? 280000 : 0),
                                        std::byte(rank + 1));
      const auto gathered = comm.all_gather(mine);
      for (int r = 0; r < ranks; ++r) {
        wrong[rank] += gathered[r].size() != static_cast<size_t>(r) * 1000 + (r == 2 ? 280000 : 0);
        for (const std::byte byte : gathered[r]) wrong[rank] += byte != std::byte(r + 1);
      }
      if (round % 5 == 0) comm.barrier();
      std::vector<float> values(round % 3 == 0 ? 5000 : 10);
      fill(values.data(), values.size(), rank, round);
      comm.all_reduce_sum(values);
      wrong[rank] += wrong_values(values.data(), values.size(), ranks, round);
    }
  });
  CHECK(all_well(errors));
  CHECK(wrong == std::vector<size_t>(ranks, 0));
}

TEST_CASE("small sums back to back never read a slot too late" * doctest::timeout(120)) {
  std::vector<size_t> wrong(2);
  const auto errors = Team(2).run([&](SharedReduction& comm, int rank) {
    std::vector<float> values(64);
    for (int round = 0; round < 20000; ++round) {
      fill(values.data(), values.size(), rank, round);
      comm.all_reduce_sum(values);
      wrong[rank] += wrong_values(values.data(), values.size(), 2, round);
    }
  });
  CHECK(all_well(errors));
  CHECK(wrong == std::vector<size_t>(2, 0));
}

TEST_CASE("a rank that does not come is named after the time limit" * doctest::timeout(60)) {
  const auto errors = Team(4).run(
      [&](SharedReduction& comm, int rank) {
        comm.barrier();
        if (rank == 1 || rank == 3) return;
        std::vector<float> values(10);
        comm.all_reduce_sum(values);
      },
      0.5);
  const std::string own = "waited 0.5 s in all_reduce_sum #2 for ranks 1 and 3";
  // The other rank either waits as long or hears of it.
  for (const int rank : {0, 2}) CHECK(errors[rank].find(own) != std::string::npos);
  CHECK(errors[1] == "");
}

TEST_CASE("ranks in different collectives are told both" * doctest::timeout(60)) {
  const auto errors = Team(2).run([&](SharedReduction& comm, int rank) {
    std::vector<float> values(10);
    if (rank == 0) comm.all_reduce_sum(std::span(values).first(9));
    if (rank == 1) comm.all_reduce_sum(values);
  });
  for (const auto& error : errors) {
    CHECK(error.find("collective #1 differs between ranks") != std::string::npos);
    CHECK(error.find("all_reduce_sum of 9") != std::string::npos);
    CHECK(error.find("all_reduce_sum of 10") != std::string::npos);
  }
}

TEST_CASE("ranks that reduce different places of a window are stopped" * doctest::timeout(60)) {
  Team team(2);
  const auto errors =
      team.run([&](SharedReduction& comm, int rank) { comm.all_reduce_sum(team.window, rank * 16, 8000); });
  for (const auto& error : errors) CHECK(error.find("differs between ranks") != std::string::npos);
}

TEST_CASE("a rank that fails ends the waits of the others at once" * doctest::timeout(60)) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = Team(3).run([&](SharedReduction& comm, int rank) {
    comm.barrier();
    if (rank == 2) throw Error("disk full");
    comm.barrier();
  });
  CHECK(errors[0] == "stopped waiting in barrier #2: rank 2 failed: disk full");
  CHECK(errors[1] == errors[0]);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

// ranks: 2 4
// links: comm
// What ranks see when they disagree, come too late, or agree that something is wrong.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/run_agreed.h"

using namespace lockstep;

namespace {

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const PeerFailure& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("one rank's failure becomes the same polite error everywhere") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 30, nullptr);
  const auto work = [&] {
    if (env.rank() == 1) throw_error("cannot read {}", "data.csv");
  };
  CHECK_THROWS_WITH_AS(run_agreed(env.world(), work), "rank 1: cannot read data.csv", PoliteError);
  CHECK_THROWS_WITH_AS(run_agreed(*comm, work), "rank 1: cannot read data.csv", PoliteError);
  const auto all = [] { throw_error("bad config"); };
  CHECK_THROWS_WITH_AS(run_agreed(env.world(), all), "bad config", PoliteError);
  CHECK_THROWS_WITH_AS(run_agreed(*comm, all), "bad config", PoliteError);
  CHECK_NOTHROW(run_agreed(env.world(), [] {}));
}

TEST_CASE("ranks in different collectives are told which") {
  const MpiEnvironment env;
  for (const char* kind : {"shm", "mpi"}) {
    const auto comm = make_communicator(kind, env, 30, nullptr);
    std::vector<float> values(100);
    comm->barrier();
    const std::string text = error_of([&] { env.rank() == 0 ? comm->barrier() : comm->all_reduce_sum(values); });
    CHECK(contains(text, "collective #2 differs between ranks"));
    CHECK(contains(text, "barrier"));
    CHECK(contains(text, "all_reduce_sum of 100"));
    MPI_Barrier(env.world());
  }
}

TEST_CASE("a rank that comes too late is named") {
  const MpiEnvironment env;
  for (const char* kind : {"shm", "mpi"}) {
    const auto comm = make_communicator(kind, env, 1, nullptr);
    std::vector<float> values(100);
    comm->barrier();
    std::string text;
    if (env.rank() != 1) text = error_of([&] { comm->all_reduce_sum(values); });
    // The waiting ranks give up while rank 1 sleeps; only then do all leave.
    if (env.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
    if (env.rank() != 1) CHECK(contains(text, "waited 1 s in all_reduce_sum #2 for rank 1"));
    // Then the late rank hears of it, too: from the notice in shared memory, or by meeting another call than its own.
    if (env.rank() == 1) text = error_of([&] { comm->barrier(); });
    if (env.rank() == 1) CHECK(contains(text, "#2"));
    MPI_Barrier(env.world());
  }
}

TEST_CASE("a rank that leaves with an exception ends the waits of the others") {
  const MpiEnvironment env;
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&] {
    const auto comm = make_communicator("shm", env, 60, nullptr);
    comm->barrier();
    if (env.rank() == 1) throw_error("disk full");
    comm->barrier();
  };
  if (env.rank() == 1) {
    CHECK_THROWS_WITH_AS(work(), "disk full", Error);
  } else {
    CHECK(error_of(work) == "stopped waiting in barrier #2: rank 1 stopped with an error");
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  MPI_Barrier(env.world());
}

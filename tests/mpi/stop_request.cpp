// ranks: 1 2 4
// links: train
// A signal on one rank of a real launch: all ranks learn of it at the same call, through every communicator, and soon.
#include "train/stop_request.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "comm/factory.h"

using namespace lockstep;

namespace {

using Clock = std::chrono::steady_clock;

struct End {
  int64_t calls = 0;
  double seconds = 0;  // from the signal to the reason, on the rank that got it
  std::string reason;
};

// Calls that take `call` each, until the last rank, which gets SIGUSR1 after a quarter of a second, has told all
// others.
End run_until_signal(Communicator& communicator, std::chrono::microseconds call) {
  StopRequest request(stop_sources({}, communicator.rank(), Clock::now()), communicator);
  const bool mine = communicator.rank() == communicator.size() - 1;
  const auto start = Clock::now();
  Clock::time_point raised;
  End end;
  for (std::optional<std::string> reason; !reason; ++end.calls) {
    REQUIRE(Clock::now() - start < std::chrono::seconds(20));
    reason = request.poll();
    end.reason = reason.value_or("");
    if (mine && raised == Clock::time_point() && Clock::now() - start > std::chrono::milliseconds(250))
      raise(SIGUSR1), raised = Clock::now();
    if (call.count() > 0) std::this_thread::sleep_for(call);
  }
  if (mine) end.seconds = std::chrono::duration<double>(Clock::now() - raised).count();
  return end;
}

bool same_everywhere(Communicator& communicator, int64_t number) {
  double low = static_cast<double>(number), high = low;
  communicator.all_reduce({&low, 1}, ReduceOp::min);
  communicator.all_reduce({&high, 1}, ReduceOp::max);
  return low == high;
}

}  // namespace

TEST_CASE("a signal on the last rank ends all ranks at the same call whatever the step takes") {
  const MpiEnvironment mpi;
  for (const char* backend : {"auto", "mpi"}) {
    const auto communicator = make_communicator(backend, mpi, 30, nullptr);
    for (const int call : {0, 100, 20000}) {
      CAPTURE(backend);
      CAPTURE(call);
      const End end = run_until_signal(*communicator, std::chrono::microseconds(call));
      CHECK(same_everywhere(*communicator, end.calls));
      CHECK_EQ(end.reason, "SIGUSR1 on rank " + std::to_string(mpi.size() - 1));
      CHECK(end.seconds < 1);  // a busy machine; measured alone: 1 to 25 ms
    }
  }
}

TEST_CASE("rank 0's time limit ends all ranks at the same call") {
  const MpiEnvironment mpi;
  const auto communicator = make_communicator("auto", mpi, 30, nullptr);
  RunConfig run;
  run.stop_signals = {};
  run.max_time = Duration{0.3};
  StopRequest request(stop_sources(run, mpi.rank(), Clock::now()), *communicator);
  int64_t calls = 0;
  std::optional<std::string> reason;
  const auto start = Clock::now();
  for (; !reason; ++calls) {
    REQUIRE(Clock::now() - start < std::chrono::seconds(20));
    reason = request.poll();
  }
  CHECK(same_everywhere(*communicator, calls));
  CHECK_EQ(reason, "max_time");
  CHECK_GT(calls, 1);
}

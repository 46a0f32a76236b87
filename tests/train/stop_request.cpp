// When ranks agree on ending a run: by counting calls, with clocks and signals that the test plays.
#include "train/stop_request.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/serial_communicator.h"
#include "support/allocations.h"
#include "support/thread_ranks.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// Counts what is agreed on, and makes agreeing take as long as the test wants.
class SlowCommunicator final : public Communicator {
 public:
  SlowCommunicator(double& clock, double cost) : clock_(clock), cost_(cost) {}
  std::string_view name() const override { return "slow"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Buffer allocate(size_t) override { return {}; }
  void all_reduce_sum(std::span<float>) override {}
  void all_reduce(std::span<double>, ReduceOp) override { clock_ += cost_, ++agreements; }
  void broadcast(std::span<std::byte>, int) override {}
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte>) override { return {}; }
  void barrier() override {}
  int64_t agreements = 0;

 private:
  double& clock_;
  double cost_;
};

struct Pace {
  int64_t interval, agreements;
};

// After 40000 calls that take `call` seconds each, where agreeing takes `cost`.
Pace pace_after(double call, double cost) {
  double clock = 0;
  SlowCommunicator communicator(clock, cost);
  StopRequest request({.now = [&] { return clock; }, .signal = [] { return 0; }}, communicator);
  for (int i = 0; i < 40000; ++i) {
    CHECK_FALSE(request.poll().has_value());
    clock += call;
  }
  return {request.interval(), communicator.agreements};
}

}  // namespace

TEST_CASE("long micro-steps agree every time and short ones every millisecond") {
  CHECK_EQ(pace_after(0.1, 2e-6).interval, 1);
  CHECK_EQ(pace_after(1.1e-3, 2e-6).interval, 1);
  const Pace mlp = pace_after(4e-6, 1e-6);
  CHECK_GE(mlp.interval, 240);
  CHECK_LE(mlp.interval, 250);
  CHECK_LE(mlp.agreements, 180);
}

TEST_CASE("where agreeing is slow it takes a hundredth of the time and no reaction waits longer than 50 ms") {
  CHECK_EQ(std::llround(static_cast<double>(pace_after(1e-4, 1e-4).interval) / 10), 10);  // every 10 ms
  CHECK_EQ(std::llround(static_cast<double>(pace_after(1e-4, 1e-2).interval) / 10), 50);  // every 50 ms
  CHECK_LE(pace_after(10e-3, 2e-4).interval, 2);                                          // every 20 ms
  CHECK_EQ(pace_after(60e-3, 1e-2).interval, 1);
}

TEST_CASE("another pace is asked for at once and reached by doubling") {
  double clock = 0;
  SlowCommunicator communicator(clock, 0);
  StopRequest request({.now = [&] { return clock; }, .signal = [] { return 0; }}, communicator);
  for (int i = 0; i < 10000; ++i) request.poll(), clock += 4e-6;
  REQUIRE_GT(request.interval(), 200);
  request.change_pace();
  const int64_t before = communicator.agreements;
  request.poll();
  CHECK_EQ(communicator.agreements, before + 1);
  for (int i = 0; i < 7; ++i) clock += 0.1, request.poll();
  CHECK_EQ(communicator.agreements, before + 8);  // evaluation in batches of 100 ms
  request.change_pace();
  std::vector<int64_t> intervals;
  for (int i = 0; i < 40; ++i) {
    request.poll(), clock += 4e-6;
    if (intervals.empty() || intervals.back() != request.interval()) intervals.push_back(request.interval());
  }
  CHECK_EQ(intervals, std::vector<int64_t>{1, 2, 4, 8, 16, 32});
}

TEST_CASE("limits end a run by the clock of rank 0") {
  double clock = 10;
  SerialCommunicator alone;
  StopRequest request({.now = [&] { return clock; }, .max_time_at = 12.0, .slurm_end_at = 20.0}, alone);
  CHECK_FALSE(request.poll().has_value());
  clock = 12.1;
  CHECK_EQ(request.poll(), "max_time");
  clock = 30;
  CHECK_EQ(request.poll(), "max_time");  // it stays what it was
  StopRequest late({.now = [&] { return clock; }, .max_time_at = 12.0, .slurm_end_at = 20.0}, alone);
  CHECK_EQ(late.poll(), "Slurm's time limit");
}

TEST_CASE("with nothing to watch nothing is ever agreed on") {
  double clock = 0;
  SlowCommunicator communicator(clock, 0);
  StopRequest request({.now = [&] { return clock; }}, communicator);
  const int64_t before = communicator.agreements;
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(request.poll().has_value());
  CHECK_EQ(communicator.agreements, before);
  CHECK_EQ(request.interval(), 0);
}

TEST_CASE("all ranks learn of one rank's signal at the same call and of nobody else's clock") {
  std::mutex mutex;
  std::vector<std::pair<int, std::string>> ends;
  const auto errors = run_ranks(3, [&](Communicator& communicator) {
    int calls = 0;
    StopSources sources{
        .now = [&] { return 1e-5 * calls * (1 + communicator.rank()); },
        .signal = [&] { return communicator.rank() > 0 && calls >= 1000 * (3 - communicator.rank()) ? SIGUSR1 : 0; }};
    if (communicator.rank() == 1) sources.max_time_at = 0.0;  // rank 0's counts
    StopRequest request(std::move(sources), communicator);
    std::optional<std::string> reason;
    while (!reason && calls < 100000) ++calls, reason = request.poll();
    const std::lock_guard lock(mutex);
    ends.emplace_back(calls, reason.value_or("none"));
  });
  CHECK_EQ(errors, std::vector<std::string>(3));
  REQUIRE_EQ(ends.size(), 3u);
  CHECK_EQ(ends[0], ends[1]);
  CHECK_EQ(ends[0], ends[2]);
  CHECK_EQ(ends[0].second, "SIGUSR1 on rank 2");
  CHECK_GE(ends[0].first, 1000);
  CHECK_LE(ends[0].first, 1100);
}

TEST_CASE("asking in vain allocates nothing") {
  double clock = 0;
  SerialCommunicator alone;
  StopRequest request({.now = [&] { return clock; }, .signal = [] { return 0; }}, alone);
  request.poll();
  const auto before = allocations();
  for (int i = 0; i < 5000; ++i) request.poll(), clock += 1e-5;
  CHECK_EQ(allocations(), before);
}

TEST_CASE("a real signal ends a run and the config says which") {
  SerialCommunicator alone;
  RunConfig run;
  run.stop_signals = {"SIGUSR2"};
  StopRequest request(stop_sources(run, 0, std::chrono::steady_clock::now()), alone);
  for (int i = 0; i < 10; ++i) CHECK_FALSE(request.poll().has_value());
  raise(SIGUSR2);
  std::optional<std::string> reason;
  for (int i = 0; i < 1000000 && !reason; ++i) reason = request.poll();
  CHECK_EQ(reason, "SIGUSR2 on rank 0");
}

TEST_CASE("max_time counts from the start of the program") {
  SerialCommunicator alone;
  RunConfig run;
  run.stop_signals = {};
  run.max_time = Duration{3600};
  const auto now = std::chrono::steady_clock::now();
  StopRequest young(stop_sources(run, 0, now), alone), old(stop_sources(run, 0, now - std::chrono::hours(1)), alone);
  CHECK_FALSE(young.poll().has_value());
  CHECK_EQ(old.poll(), "max_time");
}

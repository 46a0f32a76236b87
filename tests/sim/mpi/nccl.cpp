// ranks: 1 2 4
// links: comm
// Sums by NCCL between ranks with a simulated GPU each: right under every order of the streams, and no rank left behind
// when a call fails on another.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "comm/nccl/nccl_communicator.h"
#include "comm/run_agreed.h"
#include "sim/device_arrays.h"
#include "sim/runtime/control.h"
#include "support/tree.h"

using namespace lockstep;
using test::download;
using test::Upload;

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t floats = 1000;

float value_of(int rank, size_t i) { return static_cast<float>(1 + rank) * (i % 3 == 0 ? 1e6f : 1.1f); }

std::vector<float> values_of(int rank) {
  std::vector<float> values(floats);
  for (size_t i = 0; i < floats; ++i) values[i] = value_of(rank, i);
  return values;
}

std::vector<float> sums_of(int ranks) {
  std::vector<float> sums(floats);
  for (size_t i = 0; i < floats; ++i) sums[i] = test::plain_tree(0, ranks, [&](int r) { return value_of(r, i); });
  return sums;
}

// Three steps of "backward writes two buckets, each is summed as soon as it is written, then all of it is read".
void three_steps(const MpiEnvironment& env, double timeout_seconds) {
  std::optional<cuda::Context> made;
  run_agreed(env.world(), [&] { made.emplace(env.rank()); });  // as a run claims its device
  cuda::Context& context = *made;
  NcclCommunicator comm(env, context, timeout_seconds);
  const Buffer arena = comm.allocate(floats * sizeof(float));
  const std::span<float> gradients = arena.as<float>();
  const std::vector<float> values = values_of(env.rank());
  size_t wrong = 0;
  for (int step = 0; step < 3; ++step) {
    comm.activity().step(step);
    const auto first = gradients.first(300), second = gradients.subspan(300);
    const Upload a(context, context.compute(), std::span(values).first(300), first.data());
    comm.start_sum(first);
    const Upload b(context, context.compute(), std::span(values).subspan(300), second.data());
    comm.start_sum(second);
    comm.poll_sums();
    comm.finish_sums();
    wrong += download(context, context.compute(), gradients.data(), floats) != sums_of(env.size());
  }
  comm.barrier();
  if (wrong != 0) throw Error("wrong sums");
}

// What ended `work`, empty: nothing did.
std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void skip() { std::puts("SKIPPED: needs another rank"); }

int count_of_all(int mine) {
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

}  // namespace

TEST_CASE("sums on the device are right under every seed") {
  const MpiEnvironment env;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    sim::reset({.seed = seed + 100 * static_cast<uint64_t>(env.rank())});
    CHECK(error_of([&] { three_steps(env, 20); }) == "");
    CHECK(sim::last_misuse() == "");
  }
}

TEST_CASE("a sum that does not wait for what it adds is caught") {
  const MpiEnvironment env;
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    sim::reset({.seed = seed});
    cuda::Context context(env.rank());
    NcclCommunicator comm(env, context, 20);
    const Buffer arena = comm.allocate(floats * sizeof(float));
    const std::vector<float> values = values_of(env.rank());
    // Written in a stream that the communicator does not know of.
    const Upload upload(context, context.copies(), values, arena.as<float>().data());
    comm.all_reduce_sum(arena.as<float>());
    wrong += download(context, context.compute(), arena.as<float>().data(), floats) != sums_of(env.size());
    context.synchronize(context.copies());
    comm.barrier();
  }
  CHECK(wrong > 0);
}

TEST_CASE("everything that is not on the device goes by messages") {
  const MpiEnvironment env;
  sim::reset({});
  cuda::Context context(env.rank());
  NcclCommunicator comm(env, context, 20);
  double number = 1 + env.rank();
  comm.all_reduce({&number, 1}, ReduceOp::sum);
  CHECK(number == env.size() * (env.size() + 1) / 2);
  int word = env.rank() == 0 ? 42 : 0;
  comm.broadcast(std::as_writable_bytes(std::span(&word, 1)), 0);
  CHECK(word == 42);
  CHECK(comm.all_gather(std::as_bytes(std::span(&word, 1))).size() == static_cast<size_t>(env.size()));
  CHECK_THROWS_AS(comm.start_sum_in(WireFormat::bf16, {}), Error);
}

TEST_CASE("ranks that sum different arrays are told apart") {
  const MpiEnvironment env;
  if (env.size() == 1) return skip();
  sim::reset({});
  const std::string error = error_of([&] {
    cuda::Context context(env.rank());
    NcclCommunicator comm(env, context, 5);
    const Buffer arena = comm.allocate(floats * sizeof(float));
    comm.activity().step(7);
    comm.all_reduce_sum(arena.as<float>().first(env.rank() == 1 ? 10 : 20));
    comm.barrier();
  });
  CAPTURE(error);
  CHECK(error.find("all_reduce_sum of") != std::string::npos);
  CHECK(error.find("step 7") != std::string::npos);
}

TEST_CASE("a rank that does not come is named by those whose GPU waits for it") {
  const MpiEnvironment env;
  if (env.size() == 1) return skip();
  sim::reset({});
  const auto start = Clock::now();
  const std::string error = error_of([&] {
    cuda::Context context(env.rank());
    NcclCommunicator comm(env, context, 1);
    const Buffer arena = comm.allocate(floats * sizeof(float));
    comm.all_reduce_sum(arena.as<float>());
    context.synchronize(context.compute());
    comm.activity().step(3);
    if (env.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
    comm.all_reduce_sum(arena.as<float>());
    context.synchronize(context.compute());
    comm.barrier();
  });
  CAPTURE(error);
  if (env.rank() != 1) {
    CHECK(error.find("in all_reduce_sum (step 3)") != std::string::npos);
    CHECK((error.find("for rank 1") != std::string::npos || error.find("gave up") != std::string::npos ||
           error.find("stopped") != std::string::npos));
  } else {
    CHECK(error != "");
  }
  CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 20);
}

TEST_CASE("NCCL that does not connect all ranks ends with a message") {
  const MpiEnvironment env;
  if (env.size() == 1) return skip();
  sim::reset({});
  if (env.rank() == 1) sim::go_silent();
  const auto start = Clock::now();
  const std::string error = error_of([&] {
    cuda::Context context(env.rank());
    NcclCommunicator comm(env, context, 1);
  });
  CAPTURE(error);
  CHECK((error.find("for NCCL to connect") != std::string::npos ||
         error.find("stopped with an error") != std::string::npos));
  CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 10);
}

TEST_CASE("a call that fails on one rank ends all ranks with a message") {
  const std::vector<std::string> functions = {"cudaSetDevice",
                                              "cudaStreamCreateWithFlags",
                                              "cudaEventCreateWithFlags",
                                              "cudaEventRecord",
                                              "cudaEventQuery",
                                              "cudaStreamWaitEvent",
                                              "cudaHostAlloc",
                                              "cudaMemcpyAsync",
                                              "cudaMemsetAsync",
                                              "ncclGetUniqueId",
                                              "ncclCommInitRankConfig",
                                              "ncclCommGetAsyncError",
                                              "ncclMemAlloc",
                                              "ncclCommRegister",
                                              "ncclAllReduce",
                                              "ncclCommFinalize",
                                              "ncclCommDestroy",
                                              "ncclCommAbort"};
  const MpiEnvironment env;
  sim::reset({});
  REQUIRE(error_of([&] { three_steps(env, 20); }) == "");
  const auto counted = sim::calls();
  for (const auto& [function, times] : counted) {
    CAPTURE(function);
    CHECK(std::ranges::find(functions, function) != functions.end());
  }
  for (const std::string& function : functions) {
    for (const int nth : {0, 2}) {
      CAPTURE(function);
      CAPTURE(nth);
      const int failing = function == "ncclGetUniqueId" ? 0 : env.size() - 1;
      sim::reset({.seed = 5});
      if (env.rank() == failing) sim::fail_call(function, nth);
      const auto start = Clock::now();
      const std::string error = error_of([&] { three_steps(env, 60); });
      CAPTURE(error);
      CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 20);  // told, not timed out
      const int failed = count_of_all(error.empty() ? 0 : 1);
      CHECK((failed == 0 || failed == env.size()));  // some calls are no loss
      if (env.rank() == failing && failed > 0) CHECK(error.find(function) != std::string::npos);
      const bool must_fail = function != "ncclCommRegister" && !function.starts_with("ncclComm") && nth == 0;
      if (must_fail) CHECK(failed == env.size());
    }
  }
}

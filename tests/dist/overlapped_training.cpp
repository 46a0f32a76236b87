// Overlap under delays: real layers, real accumulation windows, ranks as threads whose reductions start late, finish
// late and are helped along at odd times. What is reduced too early, twice, or while it is still written shows as a
// wrong gradient here and as a race under ThreadSanitizer.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "backend/backend.h"
#include "dist/gradient_synchronizer.h"
#include "nn/network.h"
#include "support/thread_ranks.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr int kRanks = 4, kBatch = 3, kFeatures = 6, kOutputs = 3, kWindows = 5;

ModelSpec model() {
  return {.layers = {{.kind = "linear", .name = "a", .out = 10},
                     {.kind = "tanh"},
                     {.kind = "linear", .name = "b", .out = 8},
                     {.kind = "tanh"},
                     {.kind = "linear", .name = "c", .out = kOutputs}}};
}

std::vector<float> numbers(size_t count, int rank, int window, int micro_step, int what) {
  std::mt19937 engine(static_cast<unsigned>(((rank * 31 + window) * 31 + micro_step) * 31 + what));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

struct Replica {
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  Network network{model(), Shape{kFeatures}, *backend, kBatch};

  explicit Replica(const std::function<Buffer(size_t)>& allocate) {
    network.lay_out(allocate);
    Generator generator(3);
    network.initialize(generator);
  }
  // Adds the gradient of sum(y * dy) for the numbers of this rank and micro-step.
  void micro_step(int rank, int window, int index, bool accumulate, GradientListener& listener) {
    Graph& graph = network.graph(Phase::training, kBatch);
    const auto x = numbers(kBatch * kFeatures, rank, window, index, 0);
    graph.forward(x.data(), {});
    std::ranges::copy(numbers(kBatch * kOutputs, rank, window, index, 1), graph.output_gradient());
    graph.backward(accumulate, listener);
  }
};

class Deaf final : public GradientListener {
  void on_ready(ParameterId) override {}
};

// A rank that has no rows in this micro-step: rank 2 in the last of each window, rank 1 in all of window 3.
bool idle(int rank, int window, int index, int micro_steps) {
  return (rank == 2 && index + 1 == micro_steps) || (rank == 1 && window == 3);
}

// The gradients of all windows, added up on one rank over all ranks and micro-steps.
std::vector<std::vector<float>> oracle(int micro_steps) {
  std::vector<std::vector<float>> sums;
  Deaf deaf;
  Replica one(Buffer::host);
  for (int window = 0; window < kWindows; ++window) {
    bool accumulate = false;
    for (int rank = 0; rank < kRanks; ++rank)
      for (int i = 0; i < micro_steps; ++i) {
        if (idle(rank, window, i, micro_steps)) continue;
        one.micro_step(rank, window, i, accumulate, deaf);
        accumulate = true;
      }
    const auto gradients = one.network.store().gradients();
    sums.emplace_back(gradients.begin(), gradients.end());
  }
  return sums;
}

// Up to 2 ms, another series on each rank; some operations are not delayed at all.
Delay random_delay(int rank) {
  return [engine = std::mt19937(static_cast<unsigned>(rank))](const char* operation) mutable {
    const unsigned draw = engine();
    const bool start_or_finish = std::string_view(operation) != "poll_sums";
    if (draw % 3 == 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(draw % (start_or_finish ? 2000 : 200)));
  };
}

void check_windows(int micro_steps, const SyncSettings& settings) {
  const auto expected = oracle(micro_steps);
  std::vector<std::vector<std::vector<float>>> found(kRanks);
  std::vector<int64_t> reductions(kRanks), early(kRanks);
  const auto errors = run_ranks(
      kRanks,
      [&](Communicator& comm) {
        const auto me = static_cast<size_t>(comm.rank());
        Replica replica([&](size_t bytes) { return comm.allocate(bytes); });
        ParameterStore& store = replica.network.store();
        GradientSynchronizer sync(store, comm, replica.backend->optimizer_ops(), settings);
        for (int window = 0; window < kWindows; ++window) {
          bool accumulate = false;
          for (int i = 0; i < micro_steps; ++i) {
            sync.begin_micro_step(i, micro_steps);
            if (idle(comm.rank(), window, i, micro_steps)) continue;
            replica.micro_step(comm.rank(), window, i, accumulate, sync);
            accumulate = true;
          }
          if (!accumulate) std::ranges::fill(store.gradients(), 0.0f);
          sync.finish();
          found[me].emplace_back(store.gradients().begin(), store.gradients().end());
          comm.barrier();  // nobody overwrites what another rank still reads, as the optimizer's step would wait too
        }
        reductions[me] = sync.all_reduces();
        early[me] = sync.launched_early();
      },
      random_delay);
  for (const std::string& error : errors) REQUIRE(error == "");
  for (size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(reductions[rank] == kWindows * 6);  // buckets x windows: a bucket per parameter
    CHECK(found[rank] == found[0]);           // to the bit
  }
  if (settings.overlap) CHECK(early[0] == kWindows * 6);
  for (size_t window = 0; window < kWindows; ++window)
    for (size_t i = 0; i < expected[window].size(); ++i)
      CHECK(std::abs(found[0][window][i] - expected[window][i]) <= 1e-6f * (10 + std::abs(expected[window][i])));
}

}  // namespace

TEST_CASE("windows of four micro-steps with a bucket per parameter and late reductions") {
  for (const bool overlap : {true, false})
    check_windows(4, {.caps = {.first_bytes = 0, .bytes = 0}, .sync = true, .overlap = overlap});
}

TEST_CASE("windows of one and two micro-steps with late reductions") {
  for (const int micro_steps : {1, 2}) check_windows(micro_steps, {.caps = {.first_bytes = 0, .bytes = 0}});
}

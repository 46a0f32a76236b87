// Overlapped reduction with accumulation while ranks are held up at random between gradients, launches and polls: the
// sums are those of a serial loop after every window, and the thread sanitizer finds no access out of order.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "backend/cpu/optimizer_ops.h"
#include "comm/shm/sum_kernels.h"
#include "dist/gradient_synchronizer.h"
#include "support/thread_ranks.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr int kAccumulate = 4, kWindows = 12;

// Short random sleeps, yields and nothing, other ones on every rank.
class Delays {
 public:
  explicit Delays(unsigned seed) : random_(seed) {}
  void maybe() {
    const unsigned draw = static_cast<unsigned>(random_()) % 8;
    if (draw == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    if (draw <= 2) std::this_thread::yield();
  }

 private:
  std::minstd_rand random_;
};

ParameterStore make_store(const std::function<Buffer(size_t)>& allocate) {
  ParameterStore store;
  std::vector<ParameterId> finish_order;
  for (int64_t i = 0; i < 18; ++i) store.add_parameter(fmt::format("p{}", i), Shape{1 + 97 * (i % 5)});
  for (ParameterId id = 17; id >= 0; --id) finish_order.push_back(id);
  store.lay_out(finish_order, allocate);
  return store;
}

// What a micro-step adds to element i of a gradient; no two ranks, windows or micro-steps alike.
float gradient_of(int rank, int window, int micro_step, size_t i) {
  return 0.37f * static_cast<float>((i * 7 + static_cast<size_t>(rank * 13 + window * 5 + micro_step * 3)) % 101) -
         18.0f;
}

// The window's sum without threads: each rank's micro-steps one after another, then the ranks in the order of all sums.
std::vector<float> serial(const ParameterStore& store, int ranks, int window, WireFormat wire) {
  const size_t size = store.gradients().size();
  std::vector<std::vector<float>> local(static_cast<size_t>(ranks), std::vector<float>(size, 0.0f));
  std::vector<const float*> arrays;
  for (int rank = 0; rank < ranks; ++rank) {
    auto& mine = local[static_cast<size_t>(rank)];
    for (const Parameter& p : store.parameters()) {
      for (size_t i = p.offset; i < p.offset + p.count; ++i) {
        mine[i] = gradient_of(rank, window, 0, i);
        for (int m = 1; m < kAccumulate; ++m) mine[i] += gradient_of(rank, window, m, i);
      }
    }
    round_to(wire, mine);
    arrays.push_back(mine.data());
  }
  std::vector<float> sum(size);
  sum_into(sum.data(), arrays.data(), ranks, size);
  round_to(wire, sum);
  return sum;
}

// What backward does to the arena: parameter after parameter, and a word to the synchroniser after each.
void backward(ParameterStore& store, GradientSynchronizer& sync, Delays& delays, int rank, int window, int micro_step) {
  for (const ParameterId id : store.arena_order()) {
    const Parameter& p = store.parameters()[static_cast<size_t>(id)];
    for (size_t i = p.offset; i < p.offset + p.count; ++i) {
      const float gradient = gradient_of(rank, window, micro_step, i);
      float& sum = store.gradients()[i];
      sum = micro_step == 0 ? gradient : sum + gradient;
    }
    delays.maybe();
    sync.on_ready(id);
  }
}

size_t wrong_windows(Communicator& comm, const SyncSettings& settings) {
  const int rank = comm.rank(), ranks = comm.size();
  Delays delays(static_cast<unsigned>(rank * 7919 + ranks));
  ParameterStore store = make_store([&](size_t bytes) { return comm.allocate(bytes); });
  const CpuOptimizerOps ops;
  GradientSynchronizer sync(store, comm, ops, settings);
  size_t wrong = 0;
  for (int window = 0; window < kWindows; ++window) {
    for (int m = 0; m < kAccumulate; ++m) {
      sync.begin_micro_step(m, kAccumulate);
      backward(store, sync, delays, rank, window, m);
    }
    sync.finish();
    const std::vector<float> wanted = serial(store, ranks, window, settings.wire);
    for (const Parameter& p : store.parameters())
      for (size_t i = p.offset; i < p.offset + p.count; ++i) wrong += store.gradients()[i] != wanted[i];
  }
  wrong += sync.all_reduces() != static_cast<int64_t>(sync.buckets()) * kWindows;
  if (settings.overlap) wrong += sync.launched_early() != sync.all_reduces();
  return wrong;
}

void check_ranks(const SyncSettings& settings) {
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    std::vector<size_t> wrong(static_cast<size_t>(ranks));
    const auto errors = run_ranks(
        ranks, [&](Communicator& comm) { wrong[static_cast<size_t>(comm.rank())] = wrong_windows(comm, settings); },
        [](int rank) {
          return [delays = Delays(static_cast<unsigned>(rank + 1))](const char*) mutable { delays.maybe(); };
        });
    CHECK(errors == std::vector<std::string>(static_cast<size_t>(ranks)));
    CHECK(wrong == std::vector<size_t>(static_cast<size_t>(ranks), 0));
  }
}

}  // namespace

TEST_CASE("a bucket per parameter with four micro-steps and delays everywhere" * doctest::timeout(200)) {
  check_ranks({.caps = {.first_bytes = 0, .bytes = 0}});
}

TEST_CASE("tiny buckets of several parameters with delays everywhere" * doctest::timeout(200)) {
  check_ranks({.caps = {.first_bytes = 64, .bytes = 1500}});
}

TEST_CASE("compressed buckets with delays everywhere" * doctest::timeout(200)) {
  check_ranks({.caps = {.first_bytes = 0, .bytes = 600}, .wire = WireFormat::bf16});
}

TEST_CASE("reduction after backward with delays everywhere" * doctest::timeout(200)) {
  check_ranks({.caps = {.first_bytes = 0, .bytes = 600}, .overlap = false});
}

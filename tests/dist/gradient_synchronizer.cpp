// When buckets are launched, seen by a communicator that only writes down what it is asked.
#include "dist/gradient_synchronizer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace lockstep;

namespace {

// One of four ranks; the others add nothing.
class Recorder final : public Communicator {
 public:
  std::vector<std::string> calls;
  std::string_view name() const override { return "recorder"; }
  int rank() const override { return 0; }
  int size() const override { return 4; }
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void all_reduce_sum(std::span<float> values) override { calls.push_back(fmt::format("sum {}", values.size())); }
  void start_sum(std::span<float> values) override { calls.push_back(fmt::format("start {}", values.size())); }
  void poll_sums() override { ++polls; }
  void finish_sums() override { calls.emplace_back("finish"); }
  void all_reduce(std::span<double>, ReduceOp) override {}
  void broadcast(std::span<std::byte>, int) override {}
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte>) override { return {}; }
  void barrier() override {}
  int polls = 0;
};

// Scales and adds only.
class Ops final : public OptimizerOps {
 public:
  void sgd(const SgdArgs&, size_t, float*, const float*, float*) const override {}
  void adam(const AdamArgs&, size_t, float*, const float*, float*, float*, float*) const override {}
  void lamb_direction(const LambArgs&, size_t, const float*, const float*, float*, float*, float*) const override {}
  void adadelta(const AdadeltaArgs&, size_t, float*, const float*, float*, float*) const override {}
  void rmsprop(const RmspropArgs&, size_t, float*, const float*, float*, float*, float*) const override {}
  void adagrad(const AdagradArgs&, size_t, float*, const float*, float*) const override {}
  double sum_of_squares(size_t, const float*) const override { return 0; }
  double sum_of_abs(size_t, const float*) const override { return 0; }
  double sum_of_powers(size_t, const float*, double) const override { return 0; }
  float max_abs(size_t, const float*) const override { return 0; }
  void scale(size_t n, float* x, float factor) const override {
    for (size_t i = 0; i < n; ++i) x[i] *= factor;
  }
  void add(size_t n, const float* x, float* y) const override {
    for (size_t i = 0; i < n; ++i) y[i] += x[i];
  }
  void clamp(size_t, float*, float) const override {}
  void fill(size_t, float*, float) const override {}
  void lerp(size_t, float*, const float*, float) const override {}
  void swap(size_t, float*, float*) const override {}
};

// Parameters 0, 1, 2 of 16, 32 and 48 floats, finished in the order 2, 1, 0; a bucket each.
struct Bench {
  ParameterStore store;
  Recorder comm;
  Ops ops;
  SyncSettings settings{.caps = {.first_bytes = 0, .bytes = 0}};

  Bench() {
    for (int64_t size : {16, 32, 48}) store.add_parameter(fmt::format("p{}", size), Shape{size});
    store.lay_out(std::vector<ParameterId>{2, 1, 0}, Buffer::host);
  }
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("a bucket is launched as soon as its gradients are final") {
  Bench bench;
  GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
  sync.begin_micro_step(0, 1);
  sync.on_ready(2);
  CHECK(bench.comm.calls == Calls{"start 48"});
  sync.on_ready(1);
  CHECK(bench.comm.calls == Calls{"start 48", "start 32"});
  sync.on_ready(0);
  sync.finish();
  CHECK(bench.comm.calls == Calls{"start 48", "start 32", "start 16", "finish"});
  CHECK(bench.comm.polls == 3);
  CHECK(sync.launched_early() == 3);
}

TEST_CASE("a bucket that is complete early waits for those before it") {
  Bench bench;
  GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
  sync.begin_micro_step(0, 1);
  sync.on_ready(0);
  sync.on_ready(1);
  CHECK(bench.comm.calls.empty());
  sync.on_ready(2);
  CHECK(bench.comm.calls == Calls{"start 48", "start 32", "start 16"});
}

TEST_CASE("only the last micro-step of a window launches") {
  Bench bench;
  GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
  for (int window = 0; window < 3; ++window) {
    const int micro_steps = window == 2 ? 1 : 3;  // the last window is short
    bench.comm.calls.clear();
    for (int i = 0; i < micro_steps; ++i) {
      CHECK(bench.comm.calls.empty());
      sync.begin_micro_step(i, micro_steps);
      for (ParameterId id : {2, 1, 0}) sync.on_ready(id);
    }
    sync.finish();
    CHECK(bench.comm.calls == Calls{"start 48", "start 32", "start 16", "finish"});
  }
  CHECK(sync.all_reduces() == 9);  // buckets x windows
}

TEST_CASE("a rank without samples launches the same buckets in the same order") {
  Bench bench;
  GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
  sync.begin_micro_step(0, 1);
  sync.finish();
  CHECK(bench.comm.calls == Calls{"start 48", "start 32", "start 16", "finish"});
  CHECK(sync.launched_early() == 0);
}

TEST_CASE("without overlap and with a single bucket all is reduced after backward") {
  for (const bool overlap : {false, true}) {
    Bench bench;
    bench.settings.overlap = overlap;
    if (overlap) bench.settings.caps = {};
    GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
    sync.begin_micro_step(0, 1);
    for (ParameterId id : {2, 1, 0}) sync.on_ready(id);
    CHECK(bench.comm.calls.empty());
    sync.finish();
    CHECK(bench.comm.calls == (overlap ? Calls{"sum 96"} : Calls{"sum 48", "sum 32", "sum 16"}));
  }
}

TEST_CASE("the average of ranks divides before the sum and only once a window") {
  for (const bool overlap : {false, true}) {
    Bench bench;
    bench.settings.overlap = overlap;
    bench.settings.average_ranks = true;
    GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
    std::ranges::fill(bench.store.gradients(), 8.0f);
    for (int i = 0; i < 2; ++i) {
      sync.begin_micro_step(i, 2);
      for (ParameterId id : {2, 1, 0}) sync.on_ready(id);
    }
    sync.finish();
    CHECK(std::ranges::all_of(bench.store.gradients(), [](float g) { return g == 2.0f; }));
  }
}

TEST_CASE("several windows of a step are added and only the last one launches") {
  for (const bool overlap : {false, true}) {
    Bench bench;
    bench.settings.overlap = overlap;
    bench.settings.windows = 4;
    GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
    for (int step = 0; step < 2; ++step) {
      bench.comm.calls.clear();
      for (int window = 0; window < 4; ++window) {
        CHECK(bench.comm.calls.empty());
        std::ranges::fill(bench.store.gradients(), static_cast<float>(window + 1));
        for (int i = 0; i < 2 && window != 2; ++i) {
          sync.begin_micro_step(i, 2);
          for (ParameterId id : {2, 1, 0}) sync.on_ready(id);
        }
        if (window == 2) sync.begin_micro_step(0, 1);  // without samples
        sync.finish();
      }
      CHECK(bench.comm.calls ==
            (overlap ? Calls{"start 48", "start 32", "start 16", "finish"} : Calls{"sum 48", "sum 32", "sum 16"}));
      CHECK(std::ranges::all_of(bench.store.gradients(), [](float g) { return g == 10.0f; }));
    }
    CHECK(sync.all_reduces() == 6);
  }
}

TEST_CASE("a backward that misses a parameter is an error and not a wait") {
  Bench bench;
  GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
  sync.begin_micro_step(0, 1);
  sync.on_ready(2);
  CHECK_THROWS_WITH(sync.finish(), "backward finished 1 of 3 gradients");
}

TEST_CASE("an observer sees every bucket once a window as it is about to be sent") {
  struct Seen final : BucketObserver {
    Calls& calls;
    explicit Seen(Calls& log) : calls(log) {}
    void before_sum(const Bucket&, std::span<const float> bucket) override {
      calls.push_back(fmt::format("saw {} of {}", bucket.size(), bucket[0]));
    }
  };
  for (const bool overlap : {false, true}) {
    Bench bench;
    bench.settings.overlap = overlap;
    bench.settings.average_ranks = true;
    GradientSynchronizer sync(bench.store, bench.comm, bench.ops, bench.settings);
    Seen seen(bench.comm.calls);
    sync.observe(&seen);
    std::ranges::fill(bench.store.gradients(), 8.0f);
    for (int i = 0; i < 2; ++i) {
      sync.begin_micro_step(i, 2);
      for (ParameterId id : {2, 1, 0}) sync.on_ready(id);
    }
    sync.finish();
    const std::string sum = overlap ? "start" : "sum";
    Calls expected;
    for (const int size : {48, 32, 16}) {
      expected.push_back(fmt::format("saw {} of 2", size));
      expected.push_back(fmt::format("{} {}", sum, size));
    }
    if (overlap) expected.emplace_back("finish");
    CHECK(bench.comm.calls == expected);
  }
}

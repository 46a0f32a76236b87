// ranks: 1 2 3
// links: train
// Frozen parameters: they stay as they were broadcast, travel in no bucket, and all others train as if the frozen ones
// had merely got no update.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "dist/replica_check.h"
#include "train/trainer.h"

using namespace lockstep;

namespace {

struct Run {
  Config config;
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  RunLog log{"", false};
  Trainer trainer;

  Run(Communicator& comm, const std::string& groups, const std::vector<std::string>& overrides = {})
      : config(parse_config("model: {layers: [{linear: 8, name: a}, batch_norm, tanh, {linear: 6, name: b}, tanh, "
                            "{linear: 3, name: c}]}\n"
                            "run: {seed_per_rank: true}\n"
                            "data: {train: {kind: synthetic, name: teacher, samples: 24, shape: [5], classes: 3}}\n"
                            "train: {epochs: 2, batch_size: 3, accumulate: 2}\n"
                            "optimizer: {kind: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.01, groups: " +
                                groups +
                                "}\n"
                                "distributed: {bucket_mb: 0, first_bucket_mb: 0}\n",
                            "frozen.yaml", overrides)),
        trainer(config, *backend, comm, log) {
    broadcast_model(store(), comm);
  }
  ParameterStore& store() { return trainer.network().store(); }
  std::vector<float> value(const std::string& name) { return store().canonical_value(store().find(name)); }
  // Trains both epochs.
  void train() {
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      trainer.begin_epoch(epoch);
      for (int64_t k = 0; k < trainer.plan().epoch().steps(); ++k) trainer.train_step(k);
    }
  }
};

// A communicator that counts what it sums.
class Counter final : public Communicator {
 public:
  explicit Counter(Communicator& inner) : inner_(inner) {}
  std::string_view name() const override { return inner_.name(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Buffer allocate(size_t bytes) override { return inner_.allocate(bytes); }
  void all_reduce_sum(std::span<float> values) override { count(values), inner_.all_reduce_sum(values); }
  void start_sum(std::span<float> values) override { count(values), inner_.start_sum(values); }
  void poll_sums() override { inner_.poll_sums(); }
  void finish_sums() override { inner_.finish_sums(); }
  void all_reduce(std::span<double> values, ReduceOp op) override { inner_.all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { inner_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return inner_.all_gather(mine);
  }
  void barrier() override { inner_.barrier(); }
  int64_t sums = 0, bytes_summed = 0;

 private:
  void count(std::span<float> values) { ++sums, bytes_summed += static_cast<int64_t>(values.size_bytes()); }
  Communicator& inner_;
};

const std::vector<std::string> kAll{"a.weight", "a.bias", "1.weight", "1.bias",
                                    "b.weight", "b.bias", "c.weight", "c.bias"};

// The oracle: the same training in which the frozen parameters get no update (lr 0).
void check_like_no_update(const std::string& match, const std::vector<std::string>& frozen) {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  Run freezing(*comm, fmt::format("[{{match: {}, trainable: false}}]", match));
  Run oracle(*comm, fmt::format("[{{match: {}, lr: 0, weight_decay: 0}}]", match));
  std::vector<std::vector<float>> start;
  for (const std::string& name : kAll) start.push_back(freezing.value(name));
  freezing.train();
  oracle.train();
  for (size_t i = 0; i < kAll.size(); ++i) {
    CAPTURE(kAll[i]);
    const bool is_frozen = std::ranges::find(frozen, kAll[i]) != frozen.end();
    CHECK((freezing.value(kAll[i]) == start[i]) == is_frozen);
    const auto found = freezing.value(kAll[i]), expected = oracle.value(kAll[i]);
    for (size_t k = 0; k < found.size(); ++k) CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
  }
  CHECK(freezing.trainer.synchronizer().buckets() == kAll.size() - frozen.size());
  const auto statistics = [](Run& run) {
    const auto values = run.store().buffer_values();
    return std::vector<float>(values.begin(), values.end());
  };
  const auto found = statistics(freezing), expected = statistics(oracle);
  for (size_t k = 0; k < found.size(); ++k) CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
  CHECK_NOTHROW(check_parameters_equal(freezing.store(), *comm, 0));
}

}  // namespace

TEST_CASE("the lowest layers frozen") {
  check_like_no_update("['a.*', '1.*']", {"a.weight", "a.bias", "1.weight", "1.bias"});
}

TEST_CASE("a layer in the middle frozen") { check_like_no_update("['b.*']", {"b.weight", "b.bias"}); }

TEST_CASE("the last layer frozen") { check_like_no_update("['c.*']", {"c.weight", "c.bias"}); }

TEST_CASE("weights frozen and biases trained") {
  check_like_no_update("['?.weight']", {"a.weight", "1.weight", "b.weight", "c.weight"});
}

TEST_CASE("biases frozen and weights trained") {
  check_like_no_update("[bias]", {"a.bias", "1.bias", "b.bias", "c.bias"});
}

TEST_CASE("a frozen batch norm goes on with its running statistics") {
  check_like_no_update("[norm]", {"1.weight", "1.bias"});
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  Run run(*comm, "[{match: [norm], trainable: false}]");
  run.train();
  const auto statistics = run.store().buffer_values();
  CHECK(std::ranges::any_of(statistics, [](float value) { return value != 0 && value != 1 && value < 1; }));
}

TEST_CASE("frozen parameters cost no all-reduce and no byte") {
  const MpiEnvironment env;
  if (env.size() == 1) return;
  const auto inner = make_communicator("auto", env, 60, nullptr);
  Counter all(*inner), some(*inner);
  Run whole(all, "[]"), freezing(some, "[{match: ['a.*', b.weight], trainable: false}]");
  all.sums = all.bytes_summed = some.sums = some.bytes_summed = 0;
  whole.train();
  freezing.train();
  const int64_t steps = whole.trainer.plan().total_steps();
  CHECK(all.sums == 8 * steps);
  CHECK(some.sums == 5 * steps);
  int64_t frozen_bytes = 0;
  for (const char* name : {"a.weight", "a.bias", "b.weight"})
    frozen_bytes += static_cast<int64_t>(whole.value(name).size() * sizeof(float));
  CHECK(all.bytes_summed - some.bytes_summed == frozen_bytes * steps);
}

TEST_CASE("clipping and the norm leave frozen parameters out") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  Run run(*comm, "[{match: ['a.*', '1.*', 'b.*', c.weight], trainable: false}]",
          {"train.clip_norm=0.001", "train.accumulate=1"});
  const auto start = run.value("c.bias");
  run.trainer.begin_epoch(0);
  run.trainer.train_step(0);
  // Only c.bias counts, so its own gradient has the norm 0.001 after clipping.
  double squares = 0;
  for (float g : run.store().canonical_gradient(run.store().find("c.bias"))) squares += static_cast<double>(g) * g;
  CHECK(std::sqrt(squares) == doctest::Approx(0.001).epsilon(1e-4));
  CHECK(run.value("c.bias") != start);
}

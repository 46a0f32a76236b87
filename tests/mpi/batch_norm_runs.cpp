// ranks: 1 2 3 4
// links: train
// Batch normalisation over ranks in the trainer: synchronised statistics train as one process with the whole batch,
// step by step, and never speak while buckets are open; the others come to one set of statistics before evaluation.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "comm/serial_communicator.h"
#include "core/error.h"
#include "train/trainer.h"
#include "train/translate.h"

using namespace lockstep;

namespace {

// 25 samples in batches of 2: the last micro-step has one sample on rank 0 and none on the others. Four values per
// channel and sample: two samples alone would be +1 and -1 whatever they are, and their gradient nothing but rounding.
constexpr const char* kNet = R"(
model:
  layers:
    - {conv2d: {out: 4, kernel: 2}, name: conv}
    - {batch_norm: {}, name: bn1}
    - relu
    - {conv2d: {out: 6}, name: pointwise}
    - {batch_norm: {affine: false}, name: bn2}
    - flatten
    - {linear: 3, name: out}
data:
  train: {kind: synthetic, name: random, samples: 25, shape: [2, 3, 3], classes: 3, seed: 1}
  val: {kind: synthetic, name: random, samples: 7, shape: [2, 3, 3], classes: 3, seed: 2}
sampler: {shuffle: false}
train: {epochs: 2}
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
distributed: {bucket_mb: 0, first_bucket_mb: 0}
)";

constexpr const char* kNarrow = "model={layers: [flatten, {linear: 4}, {batch_norm: {}, name: narrow}, {linear: 3}]}";

// The communicator's contract: from a started sum to the end of the sums there is no other collective.
class Strict final : public Communicator {
 public:
  explicit Strict(Communicator& real) : real_(real) {}
  int64_t started = 0;
  std::string_view name() const override { return real_.name(); }
  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  Buffer allocate(size_t bytes) override { return closed().allocate(bytes); }
  void all_reduce_sum(std::span<float> values) override { closed().all_reduce_sum(values); }
  void start_sum(std::span<float> values) override {
    open_ = true;
    ++started;
    real_.start_sum(values);
  }
  void poll_sums() override { real_.poll_sums(); }
  void finish_sums() override {
    open_ = false;
    real_.finish_sums();
  }
  void all_reduce(std::span<double> values, ReduceOp op) override { closed().all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { closed().broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return closed().all_gather(mine);
  }
  void barrier() override { closed().barrier(); }

 private:
  Communicator& closed() {
    if (open_) throw_error("a collective between the start and the end of background sums");
    return real_;
  }
  Communicator& real_;
  bool open_ = false;
};

struct Replica {
  Config config;
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  RunLog log{"", false};
  std::unique_ptr<Trainer> trainer;

  Replica(Communicator& comm, int64_t batch, const std::string& policy, std::vector<std::string> more = {}) {
    more.push_back(fmt::format("train.batch_size={}", batch));
    more.push_back("distributed.batch_norm=" + policy);
    config = parse_config(kNet, "batch_norm.yaml", more);
    trainer = std::make_unique<Trainer>(config, *backend, comm, log);
  }
  ParameterStore& store() { return trainer->network().store(); }
  void train_epochs(int64_t epochs) {
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      trainer->begin_epoch(epoch);
      for (int64_t k = 0; k < trainer->plan().epoch().steps(); ++k) trainer->train_step(k);
    }
  }
};

double worst(std::span<const float> a, std::span<const float> b) {
  REQUIRE_EQ(a.size(), b.size());
  double result = 0;
  for (size_t i = 0; i < a.size(); ++i)
    result = std::max(result, std::abs(static_cast<double>(a[i]) - b[i]) / (1 + std::abs(static_cast<double>(b[i]))));
  return result;
}

double difference(ParameterStore& a, ParameterStore& b) {
  double result = worst(a.buffer_values(), b.buffer_values());
  for (size_t id = 0; id < a.parameters().size(); ++id)
    result = std::max(result, worst(a.canonical_value(static_cast<ParameterId>(id)),
                                    b.canonical_value(static_cast<ParameterId>(id))));
  return result;
}

// The buffers of every rank.
std::vector<std::vector<float>> gather_buffers(ParameterStore& store, Communicator& comm) {
  std::vector<std::vector<float>> all;
  for (const auto& bytes : comm.all_gather(std::as_bytes(std::span<const float>(store.buffer_values())))) {
    all.emplace_back(bytes.size() / sizeof(float));
    std::memcpy(all.back().data(), bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace

TEST_CASE("synchronised batch norm has the weights and statistics of one process after every step") {
  const MpiEnvironment env;
  SerialCommunicator alone;
  for (const char* kind : {"auto", "mpi"}) {
    const auto real = make_communicator(kind, env, 60, nullptr);
    Strict comm(*real);
    double most = 0;
    for (const int64_t samples : {25, 1}) {  // 1: most ranks never have one
      for (const int64_t accumulate : {1, 2}) {
        const std::vector<std::string> more{fmt::format("train.accumulate={}", accumulate),
                                            fmt::format("data.train.samples={}", samples)};
        Replica replica(comm, 2, "sync", more);
        Replica oracle(alone, 2 * env.size(), "sync", more);
        for (int64_t epoch = 0; epoch < 2; ++epoch) {
          replica.trainer->begin_epoch(epoch);
          oracle.trainer->begin_epoch(epoch);
          for (int64_t k = 0; k < oracle.trainer->plan().epoch().steps(); ++k) {
            replica.trainer->train_step(k);
            oracle.trainer->train_step(k);
            most = std::max(most, difference(replica.store(), oracle.store()));
          }
        }
        const auto buffers = gather_buffers(replica.store(), comm);
        for (const auto& other : buffers) CHECK(other == buffers[0]);
        CHECK_EQ(replica.trainer->synchronizer().launched_early(), 0);  // overlap is off beside such statistics
      }
    }
    MESSAGE(real->name() << " with " << env.size() << " ranks: within " << most << " of one process");
    CHECK_LE(most, 2e-6);
    CHECK_EQ(comm.started, 0);
  }
}

TEST_CASE("statistics of the own samples leave the buckets their overlap") {
  const MpiEnvironment env;
  const auto real = make_communicator("auto", env, 60, nullptr);
  Strict comm(*real);
  Replica replica(comm, 13, "average");
  replica.train_epochs(1);
  if (env.size() > 1) {
    CHECK_GT(replica.trainer->synchronizer().launched_early(), 0);
    CHECK_GT(comm.started, 0);
  }
  Replica plain(comm, 2, "sync", {"model={layers: [flatten, {linear: 4}, {linear: 3}]}"});  // nothing to synchronise
  plain.train_epochs(1);
  if (env.size() > 1) CHECK_GT(plain.trainer->synchronizer().launched_early(), 0);
}

TEST_CASE("ranks agree on running statistics before evaluation and at the end and the evaluation can be repeated") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const std::vector<std::string> more{"eval.every=2 epochs"};
  for (const std::string policy : {"rank0", "average"}) {
    CAPTURE(policy);
    Replica apart(*comm, 13, policy, more), together(*comm, 13, policy, more);
    apart.train_epochs(2);
    const auto before = gather_buffers(apart.store(), *comm);
    const RunResult result = together.trainer->run();
    const auto after = gather_buffers(together.store(), *comm);
    const EpochPlan& epoch = together.trainer->plan().epoch();
    for (size_t rank = 1; rank < after.size(); ++rank) {
      CHECK(before[rank] != before[0]);
      CHECK(after[rank] == after[0]);
    }
    for (const ModelBuffer& buffer : together.store().buffers()) {
      for (size_t i = buffer.offset; i < buffer.offset + buffer.count; ++i) {
        double expected = before[0][i];  // rank 0's, and the count of batches
        if (policy == "average" && !buffer.name.ends_with("num_batches_tracked")) {
          expected = 0;
          for (size_t rank = 0; rank < before.size(); ++rank)
            expected += before[rank][i] * static_cast<double>(epoch.rank_samples(static_cast<int64_t>(rank))) / 25;
        }
        CHECK_EQ(static_cast<double>(after[0][i]), doctest::Approx(expected).epsilon(1e-6));
      }
    }
    Generator generator(1);
    const auto val = make_dataset(together.config, *together.config.data.val, comm->rank(), generator);
    Evaluator again(*val, together.trainer->network(), *together.backend, *comm,
                    deal_virtual_ranks({}, comm->rank(), comm->size()), loss_spec(together.config.train), 1000);
    CHECK_EQ(again.run().value().loss, result.epochs.back().validation.value().loss);
  }
}

TEST_CASE("a batch norm with one value per channel is refused on all ranks before the first step") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const auto refused = [&](const std::string& policy, int64_t samples) -> std::string {
    try {
      Replica replica(*comm, 2, policy, {fmt::format("data.train.samples={}", samples), kNarrow});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const int64_t whole = 2 * env.size();  // a micro-step
  const std::string own = refused("rank0", 3 * whole + 1), across = refused("sync", 3 * whole + 1);
  CHECK_NE(own.find("in step 3 rank 0 has one sample for the batch norm 'narrow'"), std::string::npos);
  CHECK_NE(across.find(env.size() == 1 ? "in step 3 rank 0 has" : "in step 3 all"), std::string::npos);
  CHECK_EQ(refused("sync", 3 * whole + (env.size() == 1 ? 0 : 2)), "");
  CHECK_EQ(refused("rank0", 3 * whole), "");
  if (env.size() == 3) CHECK_NE(refused("rank0", 3 * whole + 5).find("in step 3 rank 2 has"), std::string::npos);
}

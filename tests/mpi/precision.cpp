// ranks: 1 2 3 4
// links: train
// bf16 and fp16 over ranks: a split of a batch is the same training up to the type's rounding, and loss scaling is one
// decision of all ranks.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "comm/serial_communicator.h"
#include "core/error.h"
#include "train/trainer.h"

using namespace lockstep;

namespace {

// A file that all ranks know by the same name; rank 0 writes it.
class SharedFile {
 public:
  SharedFile(Communicator& comm, int64_t rows, const std::function<std::string(int64_t)>& line_of) : comm_(comm) {
    static int made = 0;
    int64_t process = getpid();
    comm.broadcast(std::as_writable_bytes(std::span(&process, 1)), 0);
    path_ = std::filesystem::temp_directory_path() / fmt::format("lockstep-precision-{}-{}.csv", process, made++);
    if (comm.rank() == 0) {
      std::ofstream file(path_);
      for (int64_t row = 0; row < rows; ++row) file << line_of(row);
    }
    comm.barrier();
  }
  ~SharedFile() {
    std::error_code ignored;
    comm_.barrier();
    if (comm_.rank() == 0) std::filesystem::remove(path_, ignored);
  }
  std::string str() const { return path_.string(); }

 private:
  Communicator& comm_;
  std::filesystem::path path_;
};

using Overrides = std::vector<std::string>;

// A trainer whose steps the test takes one by one.
struct Replica {
  Config config;
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
  RunLog log{"", false};
  std::unique_ptr<Trainer> trainer;

  Replica(Communicator& comm, const std::string& yaml, const Overrides& overrides) {
    config = parse_config(yaml, "precision.yaml", overrides);
    trainer = std::make_unique<Trainer>(config, *backend, comm, log);
    trainer->begin_epoch(0);
  }
  ParameterStore& store() { return trainer->network().store(); }
  std::vector<float> values() { return {store().values().begin(), store().values().end()}; }
  int64_t steps() const { return trainer->plan().epoch().steps(); }
  double scale() const { return trainer->loss_scaling().factor(); }
};

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = a.size() == b.size() ? 0 : 1e30;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

// Bytes that must be the same on all ranks.
bool equal_on_all(Communicator& comm, std::span<const std::byte> mine) {
  const auto all = comm.all_gather(mine);
  bool equal = true;
  for (const auto& bytes : all) equal &= bytes == all[0];
  return equal;
}
bool equal_on_all(Communicator& comm, Replica& replica) {
  const double scale = replica.scale();
  return equal_on_all(comm, std::as_bytes(std::span(&scale, 1))) &&
         equal_on_all(comm, std::as_bytes(std::span<const float>(replica.store().values())));
}

constexpr const char* kConvNet = R"(
model: {layers: [{conv2d: {out: 16, kernel: 3}}, relu, {conv2d: {out: 32, kernel: 3}}, relu, {max_pool2d: 2}, flatten,
                 {linear: 24}, relu, {linear: 4}]}
data: {train: {kind: synthetic, name: random, samples: 96, shape: [1, 12, 12], classes: 4}}
sampler: {shuffle: false}
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
)";

constexpr const char* kMlp = R"(
model: {layers: [{linear: 16}, relu, {linear: 12}, relu, {linear: 4}]}
data: {train: {kind: synthetic, name: teacher, samples: 96, shape: [6], classes: 4}}
sampler: {shuffle: false}
optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
)";

std::string regression(const std::string& file) {
  return fmt::format(R"(
model: {{layers: [{{linear: 8}}, relu, {{linear: 1}}]}}
data: {{train: {{kind: csv, file: {}}}}}
sampler: {{shuffle: false}}
train: {{batch_size: 1, loss: mse, precision: fp16, loss_scale: {{init: 1024}}}}
optimizer: {{kind: adam, lr: 0.01}}
)",
                     file);
}

std::string row_of(int64_t row, const std::string& target) {
  std::string line;
  for (int k = 0; k < 3; ++k) line += fmt::format("{:.6f},", std::sin(1.7 * static_cast<double>(row * 3 + k)));
  return line + target + "\n";
}

}  // namespace

TEST_CASE("a split batch trains like one rank up to the rounding of 16 bits") {
  const MpiEnvironment env;
  SerialCommunicator alone;
  // Sums of fp32 gradients differ in the last digit; now and then that moves a weight's copy by one 16-bit step.
  for (const auto& [precision, limit] : {std::pair{std::string("fp32"), 2e-6}, std::pair{std::string("bf16"), 2e-4},
                                         std::pair{std::string("fp16"), 2e-4}}) {
    for (const char* model : {kMlp, kConvNet}) {
      for (const char* kind : {"auto", "mpi"}) {
        const auto comm = make_communicator(kind, env, 60, nullptr);
        const std::string type = "train.precision=" + precision;
        Replica split(*comm, model, {type, "train.batch_size=4", "distributed.bucket_mb=0"});
        Replica whole(alone, model, {type, fmt::format("train.batch_size={}", 4 * env.size())});
        REQUIRE(split.steps() == whole.steps());
        const std::vector<float> start = split.values();
        for (int64_t k = 0; k < split.steps(); ++k) {
          split.trainer->train_step(k);
          whole.trainer->train_step(k);
          REQUIRE(equal_on_all(*comm, split));
        }
        const double worst = difference(split.values(), whole.values());
        MESSAGE(precision << " with " << env.size() << " ranks on " << comm->name() << ": within " << worst
                          << ", moved " << difference(start, split.values()));
        CHECK(worst <= limit);
        CHECK(difference(start, split.values()) > 0.02);
      }
    }
  }
}

TEST_CASE("uneven data and a short growth interval leave scale and weights equal on all ranks") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  Replica replica(
      *comm, kMlp,
      {"data.train.samples=47", "train.batch_size=1", "train.precision=fp16", "train.loss_scale.growth_interval=2"});
  int raised = 0, lowered = 0;
  for (int64_t step = 0; step < 47; ++step) {
    const int64_t k = step % replica.steps();
    if (k == 0) replica.trainer->begin_epoch(step / replica.steps());
    const double before = replica.scale();
    replica.trainer->train_step(k);
    raised += replica.scale() == 2 * before, lowered += replica.scale() == before / 2;
    REQUIRE(equal_on_all(*comm, replica));
  }
  CHECK(raised > 3);   // every second step at first
  CHECK(lowered > 0);  // until a gradient of the output exceeds 65504
  CHECK(replica.trainer->loss_scaling().skipped() == lowered);
}

TEST_CASE("an overflow on one rank is skipped by all and halves the scale on all") {
  const MpiEnvironment env;
  const int64_t rank = std::min(1, env.size() - 1), poisoned = 3 * env.size() + rank, rows = 8 * env.size();
  const auto good = [](int64_t row) { return row_of(row, fmt::format("{:.4f}", std::cos(static_cast<double>(row)))); };
  for (const char* kind : {"auto", "mpi"}) {
    for (const char* overlap : {"distributed.overlap=true", "distributed.overlap=false"}) {
      const auto comm = make_communicator(kind, env, 60, nullptr);
      // A finite loss whose gradient is not: 2 * 3e38 * 1024.
      const SharedFile bad(*comm, rows, [&](int64_t row) { return row == poisoned ? row_of(row, "3e38") : good(row); });
      // The same data without that step.
      const SharedFile without(*comm, rows - env.size(),
                               [&](int64_t row) { return good(row < 3 * env.size() ? row : row + env.size()); });
      const Overrides buckets{overlap, "distributed.bucket_mb=0", "distributed.first_bucket_mb=0"};
      Replica replica(*comm, regression(bad.str()), buckets), oracle(*comm, regression(without.str()), buckets);
      for (int64_t k = 0; k < replica.steps(); ++k) {
        const std::vector<float> before = replica.values();
        replica.trainer->train_step(k);
        REQUIRE(equal_on_all(*comm, replica));
        CHECK((difference(before, replica.values()) == 0) == (k == 3));
        CHECK(replica.scale() == (k < 3 ? 1024 : 512));
        if (k != 3) oracle.trainer->train_step(k < 3 ? k : k - 1);
      }
      CHECK(replica.trainer->loss_scaling().skipped() == 1);
      CHECK(difference(replica.values(), oracle.values()) <= 1e-6);  // Adam's count of steps stood still too
    }
  }
}

TEST_CASE("replicas that exchange no gradients still skip together") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const int64_t poisoned = 3 * env.size() + std::min(1, env.size() - 1);
  const SharedFile file(*comm, 5 * env.size(),
                        [&](int64_t row) { return row_of(row, row == poisoned ? "3e38" : "0.5"); });
  Replica replica(*comm, regression(file.str()), {"distributed.sync=false"});
  for (int64_t k = 0; k < replica.steps(); ++k) {
    const std::vector<float> before = replica.values();
    replica.trainer->train_step(k);
    CHECK((difference(before, replica.values()) == 0) == (k == 3));
    CHECK(replica.scale() == (k < 3 ? 1024 : 512));
  }
}

TEST_CASE("a row of NaN on one rank is skipped by all under on_nonfinite skip and the training goes on") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const int64_t poisoned = 2 * env.size() + std::min(1, env.size() - 1);
  const SharedFile file(*comm, 6 * env.size(),
                        [&](int64_t row) { return row_of(row, row == poisoned ? "nan" : "0.5"); });
  Replica replica(*comm, regression(file.str()), {"train.on_nonfinite=skip"});
  for (int64_t k = 0; k < replica.steps(); ++k) {
    const std::vector<float> before = replica.values();
    replica.trainer->train_step(k);
    REQUIRE(equal_on_all(*comm, replica));
    CHECK((difference(before, replica.values()) == 0) == (k == 2));
  }
}

TEST_CASE("a scale that falls below the floor ends the run on all ranks") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const SharedFile file(*comm, 8 * env.size(), [&](int64_t row) { return row_of(row, "3e38"); });
  Replica replica(*comm, regression(file.str()), {"train.loss_scale.init=4", "train.loss_scale.floor=1"});
  replica.trainer->train_step(0);
  replica.trainer->train_step(1);
  CHECK(replica.scale() == 1);
  CHECK_THROWS_WITH_AS(replica.trainer->train_step(2), doctest::Contains("train.loss_scale.floor"), Error);
}

TEST_CASE("gradients are unscaled before they are clipped") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  const auto trained = [&](const char* scale) {
    Replica replica(*comm, kMlp,
                    {"train.precision=fp16", "train.batch_size=4", "train.clip_norm=0.05",
                     std::string("train.loss_scale=") + scale});
    for (int64_t k = 0; k < replica.steps(); ++k) replica.trainer->train_step(k);
    return replica.values();
  };
  CHECK(difference(trained("1024"), trained("64")) < 1e-4);
}

// ranks: 1 2 3 4
// links: train
// Any split of a global batch over ranks and micro-steps is the same training: the oracle is one rank with the same
// global batch, on the CPU in this very process, compared after every step. Run on the CPU and on simulated GPUs.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "comm/serial_communicator.h"
#include "support/rank_device.h"
#include "train/trainer.h"

using namespace lockstep;
using test::RankDevice;

namespace {

constexpr int64_t kBatch = 2;

// The order in which samples are dealt to `ranks` ranks (sampler.shuffle false), as one rank would read them.
std::vector<int64_t> dealt(int64_t samples, int64_t ranks, const std::string& uneven) {
  int64_t count = samples;
  if (uneven == "pad") count = (samples + ranks - 1) / ranks * ranks;
  if (uneven == "drop") count = samples / ranks * ranks;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(i % samples);
  return rows;
}

std::string line_of(int64_t row) {
  std::string line;
  for (int k = 0; k < 5; ++k) line += fmt::format("{:.6f},", std::sin(1.7 * static_cast<double>(row * 5 + k)));
  return line + fmt::format("{}\n", (row * row + 1) % 3);
}

// A file that all ranks know by the same name; rank 0 writes it.
class SharedFile {
 public:
  SharedFile(Communicator& comm, const std::vector<int64_t>& rows) : comm_(comm) {
    static int made = 0;
    int64_t process = getpid();
    comm.broadcast(std::as_writable_bytes(std::span(&process, 1)), 0);
    path_ = std::filesystem::temp_directory_path() / fmt::format("lockstep-parity-{}-{}.csv", process, made++);
    if (comm.rank() == 0) {
      std::ofstream file(path_);
      for (int64_t row : rows) file << line_of(row);
    }
    comm.barrier();
  }
  ~SharedFile() {
    std::error_code ignored;
    if (comm_.rank() == 0) std::filesystem::remove(path_, ignored);
  }
  std::string str() const { return path_.string(); }

 private:
  Communicator& comm_;
  std::filesystem::path path_;
};

// A trainer whose steps the test takes one by one.
struct Replica {
  Config config;
  RunLog log{"", false};
  std::unique_ptr<Trainer> trainer;

  Replica(Backend& backend, Communicator& comm, const std::string& file, const std::vector<std::string>& overrides) {
    config = parse_config(
        "model: {layers: [{linear: 8}, relu, {linear: 6}, tanh, {linear: 3}]}\n"
        "data: {train: {kind: csv, file: " +
            file +
            "}}\n"
            "sampler: {shuffle: false}\n"
            "train: {epochs: 2}\n"
            "optimizer: {kind: sgd, lr: 0.2, momentum: 0.9}\n",
        "parity.yaml", overrides);
    trainer = std::make_unique<Trainer>(config, backend, comm, log);
  }
  ParameterStore& store() { return trainer->network().store(); }
  int64_t steps() const { return trainer->plan().epoch().steps(); }
};

double difference(ParameterStore& a, ParameterStore& b) {
  double worst = 0;
  for (size_t id = 0; id < a.parameters().size(); ++id) {
    const auto x = a.canonical_value(static_cast<ParameterId>(id)), y = b.canonical_value(static_cast<ParameterId>(id));
    for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(x[i]) - y[i]));
  }
  return worst;
}

bool same_bits(ParameterStore& a, ParameterStore& b) {
  std::vector<float> of_a, of_b;
  const auto x = a.memory().readable(a.values(), of_a), y = b.memory().readable(b.values(), of_b);
  return std::memcmp(x.data(), y.data(), x.size_bytes()) == 0;
}

std::vector<std::string> split(int64_t batch, int64_t accumulate, const std::string& uneven) {
  return {fmt::format("train.batch_size={}", batch), fmt::format("train.accumulate={}", accumulate),
          "sampler.uneven=" + uneven};
}

std::vector<std::string> with(std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

// 23 samples: the last windows are short, and some ranks have no rows in some micro-steps. 1 sample: most ranks have
// none at all.
template <class Check>
void for_each_split(int ranks, const Check& check) {
  for (const int64_t samples : {23, 1}) {
    for (const std::string uneven : {"exact", "pad", "drop"}) {
      if (samples < ranks && uneven == "drop") continue;  // no rank has a sample
      for (const int64_t accumulate : {1, 2, 3}) {
        CAPTURE(samples);
        CAPTURE(uneven);
        CAPTURE(accumulate);
        check(samples, uneven, accumulate);
      }
    }
  }
}

}  // namespace

TEST_CASE("every split has the weights of one rank after every step") {
  const MpiEnvironment env;
  for (const char* kind : {"auto", "mpi"}) {
    RankDevice device(env, kind);
    Communicator* comm = &device.comm();
    const auto cpu = make_cpu_backend({.threads = 1});
    SerialCommunicator alone;
    double worst = 0;
    for_each_split(env.size(), [&](int64_t samples, const std::string& uneven, int64_t accumulate) {
      const SharedFile file(*comm, dealt(samples, samples, "exact"));
      const SharedFile list(*comm, dealt(samples, env.size(), uneven));
      Replica replica(device.backend(), *comm, file.str(), split(kBatch, accumulate, uneven));
      Replica oracle(*cpu, alone, list.str(), split(kBatch * accumulate * env.size(), 1, "exact"));
      REQUIRE(replica.steps() == oracle.steps());
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        replica.trainer->begin_epoch(epoch);
        oracle.trainer->begin_epoch(epoch);
        for (int64_t k = 0; k < replica.steps(); ++k) {
          replica.trainer->train_step(k);
          oracle.trainer->train_step(k);
          worst = std::max(worst, difference(replica.store(), oracle.store()));
        }
      }
    });
    MESSAGE(comm->name() << " with " << env.size() << " ranks: weights within " << worst << " of one rank");
    CHECK(worst <= 1e-6);
  }
}

TEST_CASE("overlap and the size of buckets change no bit and each bucket is reduced once a step") {
  const MpiEnvironment env;
  RankDevice device(env, "auto");
  Communicator* comm = &device.comm();
  for_each_split(env.size(), [&](int64_t samples, const std::string& uneven, int64_t accumulate) {
    const SharedFile file(*comm, dealt(samples, samples, "exact"));
    const auto base = split(kBatch, accumulate, uneven);
    Replica whole(device.backend(), *comm, file.str(), with(base, {"distributed.overlap=false"}));
    Replica tiny(device.backend(), *comm, file.str(),
                 with(base, {"distributed.overlap=false", "distributed.bucket_mb=0", "distributed.first_bucket_mb=0"}));
    Replica overlapped(
        device.backend(), *comm, file.str(),
        with(base, {"distributed.overlap=true", "distributed.bucket_mb=0", "distributed.first_bucket_mb=0"}));
    Replica some(
        device.backend(), *comm, file.str(),
        with(base, {"distributed.overlap=true", "distributed.bucket_mb=0.0002", "distributed.first_bucket_mb=0.0001"}));
    CHECK(whole.trainer->synchronizer().buckets() == 1);
    CHECK(tiny.trainer->synchronizer().buckets() == 6);
    CHECK(overlapped.trainer->synchronizer().buckets() == 6);
    int64_t steps = 0;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      for (Replica* replica : {&whole, &tiny, &overlapped, &some}) replica->trainer->begin_epoch(epoch);
      for (int64_t k = 0; k < whole.steps(); ++k, ++steps) {
        for (Replica* replica : {&whole, &tiny, &overlapped, &some}) replica->trainer->train_step(k);
        CHECK(same_bits(whole.store(), tiny.store()));
        CHECK(same_bits(whole.store(), overlapped.store()));
        CHECK(same_bits(whole.store(), some.store()));
      }
    }
    for (Replica* replica : {&whole, &tiny, &overlapped, &some}) {
      const GradientSynchronizer& sync = replica->trainer->synchronizer();
      CHECK(sync.all_reduces() == (env.size() == 1 ? 0 : static_cast<int64_t>(sync.buckets()) * steps));
    }
    // Rank 0 has rows in the first window's last micro-step, so its backward launches there.
    const bool full_window = samples > (accumulate - 1) * kBatch * env.size();
    if (env.size() > 1 && env.rank() == 0 && full_window)
      CHECK(overlapped.trainer->synchronizer().launched_early() > 0);
  });
}

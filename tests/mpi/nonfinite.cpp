// ranks: 2 3
// links: train
// A row of rank 1 that is no number: with skip every rank leaves out the same step, and afterwards parameters,
// optimizer step counters and the schedule's step are equal on all ranks; with stop all ranks throw the same words.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "train/trainer.h"

using namespace lockstep;

namespace {

// Rows dealt so that rank 1 has the bad one in micro-step 2: the second window of two.
class DamagedFile {
 public:
  explicit DamagedFile(Communicator& comm) : comm_(comm) {
    int64_t process = getpid();
    comm.broadcast(std::as_writable_bytes(std::span(&process, 1)), 0);
    path_ = std::filesystem::temp_directory_path() / fmt::format("lockstep-nonfinite-{}.csv", process);
    bad_row_ = 2 * comm.size() + 1;
    if (comm.rank() == 0) {
      std::ofstream file(path_);
      for (int row = 0; row < 10 * comm.size(); ++row)
        file << (row == bad_row_ ? "nan" : fmt::format("{}", 0.1 * row)) << "," << 0.3 - 0.01 * row << "," << row % 2
             << "\n";
    }
    comm.barrier();
  }
  ~DamagedFile() {
    std::error_code ignored;
    if (comm_.rank() == 0) std::filesystem::remove(path_, ignored);
  }
  std::string str() const { return path_.string(); }
  int bad_row() const { return bad_row_; }

 private:
  Communicator& comm_;
  std::filesystem::path path_;
  int bad_row_;
};

Config config_of(const std::string& file, const std::string& policy) {
  return parse_config(fmt::format("model: {{layers: [{{linear: 4}}, relu, {{linear: 2}}]}}\n"
                                  "data: {{train: {{kind: csv, file: {}}}}}\n"
                                  "sampler: {{shuffle: false}}\n"
                                  "train: {{epochs: 1, batch_size: 1, accumulate: 2, on_nonfinite: {}}}\n"
                                  "optimizer: {{kind: adam, lr: 0.01}}\n"
                                  "eval: {{every: never}}\n"
                                  "log: {{every: 1}}\n",
                                  file, policy),
                      "nonfinite.yaml", {});
}

template <class T>
bool same_on_all(Communicator& comm, std::span<const T> mine) {
  const auto all = comm.all_gather(std::as_bytes(mine));
  return std::ranges::all_of(all, [&](const auto& theirs) { return theirs == all[0]; });
}

}  // namespace

TEST_CASE("skip leaves out one window on all ranks and every counter stays equal") {
  const MpiEnvironment env;
  for (const char* kind : {"shm", "mpi"}) {
    const auto comm = make_communicator(kind, env, 60, nullptr);
    const DamagedFile file(*comm);
    const Config config = config_of(file.str(), "skip");
    const auto backend = make_cpu_backend({.threads = 1});
    RunLog log("", false);
    Trainer trainer(config, *backend, *comm, log);
    trainer.begin_epoch(0);
    REQUIRE(trainer.plan().epoch().steps() == 5);
    for (int64_t step = 0; step < 5; ++step) {
      const auto values = trainer.network().store().values();
      const std::vector<float> before(values.begin(), values.end());
      trainer.train_step(step);
      const bool unchanged = std::memcmp(before.data(), values.data(), values.size_bytes()) == 0;
      CHECK(unchanged == (step == 1));  // micro-steps 2 and 3
      const int64_t updates = trainer.optimizer().step_count();
      CHECK(updates == (step < 1 ? step + 1 : step));
      CHECK(same_on_all<int64_t>(*comm, {&updates, 1}));
      CHECK(same_on_all<float>(*comm, values));
    }
    CHECK(trainer.synchronizer().all_reduces() == 5 * static_cast<int64_t>(trainer.synchronizer().buckets()));
  }
}

TEST_CASE("stop ends every rank with the same words") {
  const MpiEnvironment env;
  for (const char* kind : {"shm", "mpi"}) {
    const auto comm = make_communicator(kind, env, 60, nullptr);
    const DamagedFile file(*comm);
    const Config config = config_of(file.str(), "stop");
    const auto backend = make_cpu_backend({.threads = 1});
    RunLog log("", false);
    Trainer trainer(config, *backend, *comm, log);
    std::string text;
    try {
      trainer.run();
    } catch (const Error& error) {
      text = error.what();
    }
    const std::string wanted = fmt::format("step 1: the loss is not finite on rank 1 (rows {}, {})", file.bad_row(),
                                           file.bad_row() + comm->size());
    CAPTURE(text);
    CHECK(text.find(wanted) == 0);
    MPI_Barrier(env.world());
  }
}

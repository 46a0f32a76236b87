// ranks: 1 2 3 4 8
// links: train
// Random geometries (more ranks than samples and a single sample among them) under the real launcher, on both kinds of
// communicator: no hang, no crash, and the weights of plain loops after every step. tests/train/uneven.cpp has more of
// them with ranks as threads.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/rank_device.h"
#include "support/uneven_training.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// A directory that all ranks know by the same name.
class SharedDirectory {
 public:
  explicit SharedDirectory(Communicator& comm) : comm_(comm) {
    int64_t process = getpid();
    comm.broadcast(std::as_writable_bytes(std::span(&process, 1)), 0);
    path_ = std::filesystem::temp_directory_path() / fmt::format("lockstep-uneven-{}", process);
    if (comm.rank() == 0) std::filesystem::create_directories(path_);
    comm.barrier();
  }
  ~SharedDirectory() {
    std::error_code ignored;
    if (comm_.rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  Communicator& comm_;
  std::filesystem::path path_;
};

template <class G>
void check(const G& g, const std::string& yaml, RankDevice& device, double& worst, int& trained) {
  CAPTURE(g.text());
  std::string error;
  try {
    trained += train_and_compare(g, yaml, device.backend(), device.comm(), worst) ? 1 : 0;
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  REQUIRE(error == "");  // the first failure ends the test: ranks may be out of step now
}

}  // namespace

TEST_CASE("random geometries have the weights of plain loops after every step") {
  const MpiEnvironment env;
  for (const char* kind : {"auto", "mpi"}) {
    RankDevice device(env, kind);
    Communicator* comm = &device.comm();
    std::mt19937 engine(4);
    double worst = 0;
    int trained = 0;
    for (int round = 0; round < 25; ++round) {
      Geometry g = random_geometry(engine, env.size());
      if (round == 0) g = {.samples = 1, .ranks = env.size(), .batch = 3, .accumulate = 2};
      if (round == 1) g = {.samples = env.size() + 1, .ranks = env.size(), .batch = 1};
      if (round == 2) g = {.samples = 1, .ranks = env.size(), .batch = 2, .uneven = "pad"};
      check(g, g.yaml(), device, worst, trained);
    }
    MESSAGE(comm->name() << " with " << env.size() << " ranks: " << trained << " of 25 trained, weights within "
                         << worst);
    CHECK(trained > 10);
  }
}

TEST_CASE("random sizes of own data have the weights of plain loops after every step") {
  const MpiEnvironment env;
  for (const char* kind : {"auto", "mpi"}) {
    RankDevice device(env, kind);
    Communicator* comm = &device.comm();
    const SharedDirectory directory(*comm);
    std::mt19937 engine(5);
    double worst = 0;
    int trained = 0;
    for (int round = 0; round < 15; ++round) {
      const OwnGeometry g = random_own(engine, env.size());
      std::ofstream(directory.path() / fmt::format("part-{}.csv", env.rank())) << g.table(env.rank());
      comm->barrier();
      check(g, g.yaml((directory.path() / "part-{rank}.csv").string()), device, worst, trained);
    }
    MESSAGE(comm->name() << " with " << env.size() << " ranks: " << trained << " of 15 trained, weights within "
                         << worst);
    CHECK(trained > 5);
  }
}

// Real runs of DistributedDataParallel under join() with five and three rows, from w = 0.25, SGD with lr 0.1.
TEST_CASE("join gives the weights of PyTorch's join") {
  const MpiEnvironment env;
  if (env.size() != 2) return;
  RankDevice device(env, "auto");
  Communicator* comm = &device.comm();
  const SharedDirectory directory(*comm);
  std::ofstream(directory.path() / fmt::format("part-{}.csv", env.rank()))
      << (env.rank() == 0 ? "1,1\n1,2\n1,3\n1,4\n1,5\n" : "1,10\n1,20\n1,30\n");
  comm->barrier();
  struct Case {
    int64_t batch;
    std::string average;
    std::vector<double> weights;
  };
  const Case cases[] = {
      {1, "ranks", {1.30000007, 3.24000025, 5.8920002, 5.70280027, 5.6325202}},  // divide_by_initial_world_size
      {2, "ranks", {1.85000002, 4.82999992, 4.84700012}},
      {1, "samples", {1.30000007, 3.24000025, 5.8920002, 5.51360035, 5.41088009}}};  // ... = False
  for (const Case& c : cases) {
    OwnGeometry g{.sizes = {5, 3}, .batch = c.batch};
    const Config config = parse_config(g.yaml((directory.path() / "part-{rank}.csv").string()), "join.yaml",
                                       {"sampler.shuffle=false", "distributed.average=" + c.average});
    RunLog log("", false);
    Trainer trainer(config, device.backend(), *comm, log);
    const float start = 0.25f;
    trainer.network().store().set_canonical(0, {&start, 1});
    trainer.begin_epoch(0);
    REQUIRE(trainer.plan().epoch().steps() == std::ssize(c.weights));
    for (size_t k = 0; k < c.weights.size(); ++k) {
      trainer.train_step(static_cast<int64_t>(k));
      CHECK(trainer.network().store().canonical_value(0)[0] == doctest::Approx(c.weights[k]).epsilon(3e-7));
    }
  }
}

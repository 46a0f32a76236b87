// ranks: 1 2 3 4 8
// links: train
// Random geometries (more ranks than samples and a single sample among them) under the real launcher, on both kinds of
// communicator: no hang, no crash, and the weights of plain loops after every step. tests/train/uneven.cpp has more of
// them with ranks as threads.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "comm/factory.h"
#include "comm/mpi_env.h"
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
void check(const G& g, const std::string& yaml, Communicator& comm, double& worst, int& trained) {
  CAPTURE(g.text());
  std::string error;
  try {
    trained += train_and_compare(g, yaml, comm, worst) ? 1 : 0;
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  REQUIRE(error == "");  // the first failure ends the test: ranks may be out of step now
}

}  // namespace

TEST_CASE("random geometries have the weights of plain loops after every step") {
  const MpiEnvironment env;
  for (const char* kind : {"auto", "mpi"}) {
    const auto comm = make_communicator(kind, env, 60, nullptr);
    std::mt19937 engine(4);
    double worst = 0;
    int trained = 0;
    for (int round = 0; round < 25; ++round) {
      Geometry g = random_geometry(engine, env.size());
      if (round == 0) g = {.samples = 1, .ranks = env.size(), .batch = 3, .accumulate = 2};
      if (round == 1) g = {.samples = env.size() + 1, .ranks = env.size(), .batch = 1};
      if (round == 2) g = {.samples = 1, .ranks = env.size(), .batch = 2, .uneven = "pad"};
      check(g, g.yaml(), *comm, worst, trained);
    }
    MESSAGE(comm->name() << " with " << env.size() << " ranks: " << trained << " of 25 trained, weights within "
                         << worst);
    CHECK(trained > 10);
  }
}

TEST_CASE("random sizes of own data have the weights of plain loops after every step") {
  const MpiEnvironment env;
  for (const char* kind : {"auto", "mpi"}) {
    const auto comm = make_communicator(kind, env, 60, nullptr);
    const SharedDirectory directory(*comm);
    std::mt19937 engine(5);
    double worst = 0;
    int trained = 0;
    for (int round = 0; round < 15; ++round) {
      const OwnGeometry g = random_own(engine, env.size());
      std::ofstream(directory.path() / fmt::format("part-{}.csv", env.rank())) << g.table(env.rank());
      comm->barrier();
      check(g, g.yaml((directory.path() / "part-{rank}.csv").string()), *comm, worst, trained);
    }
    MESSAGE(comm->name() << " with " << env.size() << " ranks: " << trained << " of 15 trained, weights within "
                         << worst);
    CHECK(trained > 5);
  }
}

// lockstep bench allreduce: what it prints, not how fast it is.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "support/process.h"

using namespace lockstep::test;

namespace {

Outcome bench(int ranks, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {LOCKSTEP_BINARY, "bench", "allreduce"});
  return run_process(ranks == 0 ? arguments : mpirun(ranks, arguments),
                     240);  // MPI_Allreduce spins: minutes where others want the cores
}

nlohmann::json json_of(const Outcome& outcome) {
  const size_t begin = outcome.output.find('{');
  REQUIRE(begin != std::string::npos);
  return nlohmann::json::parse(outcome.output.substr(begin, outcome.output.find('\n', begin) - begin));
}

}  // namespace

TEST_CASE("bench allreduce compares every communicator of a node with MPI_Allreduce") {
  const Outcome outcome = bench(2, {"--sizes", "256,400000", "--calls", "3", "--json"});
  CAPTURE(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const nlohmann::json report = json_of(outcome);
  CHECK(report["ranks"] == 2);
  CHECK(report["nodes"] == 1);
  CHECK(report["core_round_trip_us"] > 0);
  std::multiset<std::string> paths;
  for (const auto& cost : report["all_reduce"]) {
    paths.insert(cost["path"]);
    CHECK(cost["latency_us"] > 0);
    CHECK(cost["marginal_us"].is_number());  // noise may make little of it, and the sharded update cost nothing
    CHECK(cost["marginal_ratio"] > 0);
    CHECK(cost["marginal_ratio"] <= 100);
    // Two ranks: a rank moves exactly the array's bytes.
    CHECK(cost["bus_gb_s"].get<double>() ==
          doctest::Approx(cost["bytes"].get<double>() / cost["latency_us"].get<double>() / 1000));
    if (cost["path"] == "MPI_Allreduce") CHECK(cost["latency_ratio"] == 1.0);
  }
  CHECK(paths == std::multiset<std::string>{"MPI_Allreduce", "MPI_Allreduce", "mpi", "mpi", "shm", "shm", "shm private",
                                            "shm private", "shm sharded", "shm sharded"});
}

TEST_CASE("bench allreduce shows the two-level path on pretended nodes") {
  const Outcome outcome = bench(4, {"--sizes", "40000", "--calls", "2", "--pretend-nodes", "2"});
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.says("4 ranks on 2 node(s) (pretended)"));
  CHECK(outcome.says("marginal us"));
  CHECK(outcome.count("       40000 hierarchical") == 2);
}

TEST_CASE("bench allreduce on one rank says that it would mean nothing") {
  const Outcome outcome = bench(0, {});
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.says("one rank has nobody to reduce with"));
}

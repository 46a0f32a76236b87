// ranks: 2 3
// links: dist
// Ranks that were not built or configured alike: the same polite error on all, naming the rank and the first
// difference.
#include <doctest/doctest.h>

#include <string>

#include "comm/factory.h"
#include "comm/run_agreed.h"
#include "dist/replica_check.h"

using namespace lockstep;

namespace {

const char* const kBuild = "lockstep 0.1.0 (Release), GNU 12.2.0, oneDNN 2.6.3";
const char* const kConfig = "optimizer:\n  lr: 0.1\n";

ParameterStore make_store(const std::vector<std::pair<std::string, int64_t>>& parameters) {
  ParameterStore store;
  std::vector<ParameterId> order;
  for (const auto& [name, size] : parameters) order.push_back(store.add_parameter(name, Shape{size}));
  store.lay_out(order, Buffer::host);
  return store;
}

void check_told(const ParameterStore& store, const std::string& build, const std::string& config,
                const std::string& message) {
  const MpiEnvironment env;
  for (const char* kind : {"shm", "mpi"}) {
    const auto comm = make_communicator(kind, env, 60, nullptr);
    CHECK_THROWS_WITH_AS(check_replicas_alike(store, build, config, *comm), message.c_str(), PoliteError);
    comm->barrier();  // everyone is still in step
  }
}

// Rank 1 is the odd one.
bool odd() {
  const MpiEnvironment env;
  return env.rank() == 1;
}

}  // namespace

TEST_CASE("replicas that are alike pass") {
  const MpiEnvironment env;
  const auto comm = make_communicator("auto", env, 60, nullptr);
  CHECK_NOTHROW(check_replicas_alike(make_store({{"0.weight", 8}, {"0.bias", 2}}), kBuild, kConfig, *comm));
}

TEST_CASE("another build is named") {
  check_told(make_store({{"0.weight", 8}}), odd() ? "lockstep 0.1.0 (Release), GNU 13.1.0, oneDNN 3.2.0" : kBuild,
             kConfig,
             "ranks 0 and 1 differ in the build: 'lockstep 0.1.0 (Release), GNU 12.2.0, oneDNN 2.6.3' against "
             "'lockstep 0.1.0 (Release), GNU 13.1.0, oneDNN 3.2.0'");
}

TEST_CASE("another config is named") {
  check_told(make_store({{"0.weight", 8}}), kBuild, odd() ? "optimizer:\n  lr: 0.2\n" : kConfig,
             "ranks 0 and 1 differ in the config: '  lr: 0.1' against '  lr: 0.2'");
}

TEST_CASE("another shape is named") {
  check_told(make_store({{"0.weight", odd() ? 9 : 8}, {"0.bias", 2}}), kBuild, kConfig,
             "ranks 0 and 1 differ in a parameter: '0.weight [8]' against '0.weight [9]'");
}

TEST_CASE("another name is named") {
  check_told(make_store({{"0.weight", 8}, {odd() ? "1.bias" : "0.bias", 2}}), kBuild, kConfig,
             "ranks 0 and 1 differ in a parameter: '0.bias [2]' against '1.bias [2]'");
}

TEST_CASE("a parameter more is named") {
  const MpiEnvironment env;
  ParameterStore store = odd() ? make_store({{"0.weight", 8}, {"0.bias", 2}}) : make_store({{"0.weight", 8}});
  const auto comm = make_communicator("auto", env, 60, nullptr);
  std::string text;
  try {
    check_replicas_alike(store, kBuild, kConfig, *comm);
  } catch (const PoliteError& error) {
    text = error.what();
  }
  CAPTURE(text);
  CHECK(text.find("ranks 0 and 1 differ in") == 0);
  CHECK(text.find("0.bias [2]") != std::string::npos);
}

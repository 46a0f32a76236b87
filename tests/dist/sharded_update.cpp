// Steps shared by ranks, which are threads that come late: every rank's parameters after every step are to the bit
// those of a plain step from the tree's sum, and states can be gathered. What is touched too early is a race under
// ThreadSanitizer.
#include "dist/sharded_update.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "backend/cpu/optimizer_ops.h"
#include "support/thread_ranks.h"
#include "support/tree.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const CpuOptimizerOps kOps;
constexpr size_t kArena = 20'000;  // several blocks a rank
constexpr int kSteps = 6;

float gradient(int rank, size_t i, int step) {
  return std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(rank * 5 + step)) * (i % 3 == 0 ? 1e3f : 1e-3f);
}

std::vector<ParameterGroup> groups() {  // with a gap, and one that ends within a line
  return {{"group 1", {{0, 700}, {9'000, 10'993}}, 0.01, 0}, {"the rest", {{704, 8'000}}, 0.002, 0.01}};
}

OptimizerSettings settings(const std::string& kind) {
  OptimizerSettings made;
  made.kind = kind;
  if (kind == "sgd") made.momentum = 0.9;
  return made;
}

std::vector<float> first_parameters() {
  std::vector<float> values(kArena);
  for (size_t i = 0; i < kArena; ++i) values[i] = std::cos(static_cast<float>(i));
  return values;
}

struct Oracle {
  std::vector<std::vector<float>> parameters;  // after each step
  std::vector<std::vector<float>> states;      // after the last

  Oracle(const std::string& kind, int ranks) {
    const auto optimizer = make_optimizer(settings(kind), groups(), kArena, kOps);
    std::vector<float> p = first_parameters(), g(kArena);
    for (int step = 0; step < kSteps; ++step) {
      for (size_t i = 0; i < kArena; ++i) g[i] = plain_tree(0, ranks, [&](int r) { return gradient(r, i, step); });
      optimizer->step(p, g);
      parameters.push_back(p);
    }
    for (const StateArray& array : optimizer->state()) states.emplace_back(array.values.begin(), array.values.end());
  }
};

void train(Communicator& comm, const std::string& kind, const Oracle& oracle) {
  const Buffer parameters = comm.allocate(kArena * sizeof(float)), gradients = comm.allocate(kArena * sizeof(float));
  const std::span<float> p = parameters.as<float>(), g = gradients.as<float>();
  const std::vector<float> first = first_parameters();
  std::copy(first.begin(), first.end(), p.begin());
  ShardedUpdate sharded(comm, kArena);
  const auto optimizer = make_optimizer(settings(kind), sharded.own_part(groups()), kArena, kOps);
  comm.barrier();
  std::mt19937 engine(static_cast<unsigned>(comm.rank()));
  const auto wait_a_little = [&] {
    if (engine() % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(engine() % 500));
  };
  for (int step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < kArena; ++i) g[i] = gradient(comm.rank(), i, step);
    wait_a_little();
    sharded.begin(g);
    wait_a_little();
    sharded.step(*optimizer, p);
    wait_a_little();
    sharded.end();
    const std::vector<float>& wanted = oracle.parameters[static_cast<size_t>(step)];
    if (std::memcmp(p.data(), wanted.data(), kArena * sizeof(float)) != 0) throw Error("other parameters");
  }
  for (size_t i = 0; i < optimizer->state().size(); ++i) {
    const std::span<float> state = optimizer->state()[i].values;
    sharded.gather(state);
    if (comm.rank() > 0) continue;
    if (std::memcmp(state.data(), oracle.states[i].data(), state.size_bytes()) != 0) throw Error("another state");
  }
}

}  // namespace

TEST_CASE("a step shared by ranks has the bits of a whole step on each" * doctest::timeout(120)) {
  for (const char* kind : {"sgd", "adam", "adamw", "adadelta", "rmsprop", "adagrad"})
    for (const int ranks : {1, 2, 3, 5}) {
      CAPTURE(kind);
      CAPTURE(ranks);
      const Oracle oracle(kind, ranks);
      const auto errors = run_ranks(ranks, [&](Communicator& comm) { train(comm, kind, oracle); });
      for (const std::string& error : errors) CHECK(error == "");
    }
}

TEST_CASE("every place of a group is one rank's, in blocks") {
  std::vector<int> owners(kArena);
  std::mutex together;
  const auto errors = run_ranks(3, [&](Communicator& comm) {
    const ShardedUpdate sharded(comm, kArena);
    const auto part = sharded.own_part(groups());
    if (part.size() != 2 || part[0].lr != 0.01 || part[1].weight_decay != 0.01) throw Error("other groups");
    const std::lock_guard lock(together);
    for (const ParameterGroup& group : part)
      for (const ParameterRange& range : group.ranges) {
        if (range.count == 0 || range.count > Shards::block) throw Error("no block");
        for (size_t i = 0; i < range.count; ++i) ++owners[range.offset + i];
      }
  });
  for (const std::string& error : errors) CHECK(error == "");
  std::vector<int> wanted(kArena);
  for (const ParameterGroup& group : groups())
    for (const ParameterRange& range : group.ranges)
      std::fill_n(wanted.begin() + static_cast<long>(range.offset), range.count, 1);
  CHECK(owners == wanted);
}

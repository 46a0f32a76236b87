// ranks: 1 2 3 4 5 9
// links: comm
// Every collective of each communicator under real mpirun against a plain loop over what all ranks must hold.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "comm/hierarchical/hierarchical_communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/run_agreed.h"
#include "support/tree.h"

using namespace lockstep;

namespace {

// All kinds that fit the number of ranks, MPI with pieces of 1,000 elements, and nodes that are pretended.
std::vector<std::unique_ptr<Communicator>> communicators(const MpiEnvironment& env) {
  std::vector<std::unique_ptr<Communicator>> made;
  for (const char* kind : {"auto", "shm", "mpi"}) made.push_back(make_communicator(kind, env, 60, nullptr));
  made.push_back(
      std::make_unique<MpiCommunicator>(env.world(), MpiOptions{.timeout_seconds = 60, .chunk_limit = 1000}));
  for (const int ranks_per_node : {1, 2, 4}) {
    const auto node = mpi::OwnedComm::split(env.node(), env.rank() / ranks_per_node, env.rank());
    made.push_back(std::make_unique<HierarchicalCommunicator>(env.world(), node.get(), WaitPolicy{60, true}));
  }
  return made;
}

// Very different magnitudes and signs: another order of addition gives other bits.
float value_of(int rank, size_t i, int round) {
  const float magnitude = i % 3 == 0 ? 3e7f : i % 3 == 1 ? 1.1f : 1.7e-7f;
  const float sign = (rank + static_cast<int>(i % 5) + round) % 2 == 0 ? 1.0f : -1.0f;
  return sign * magnitude * static_cast<float>(1 + rank + (round + static_cast<int>(i % 11)) % 7);
}

void fill(std::span<float> values, int rank, int round) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(rank, i, round);
}

size_t wrong_sums(std::span<const float> values, int ranks, int round) {
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const float sum = test::plain_tree(0, ranks, [&](int r) { return value_of(r, i, round); });
    wrong += std::memcmp(&sum, &values[i], sizeof(sum)) != 0;
  }
  return wrong;
}

}  // namespace

TEST_CASE("sums have the bits of the tree for any size and place") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    CAPTURE(comm->name());
    const Buffer buffer = comm->allocate(1'000'100 * sizeof(float));
    int round = 0;
    for (const size_t count : {0, 1, 3, 1000, 1500, 4096, 7000, 70'001, 1'000'000}) {
      for (const size_t first : {0, 3, 16}) {
        const auto values = buffer.as<float>().subspan(first, count);
        fill(values, env.rank(), ++round);
        comm->all_reduce_sum(values);
        CHECK(wrong_sums(values, env.size(), round) == 0);
      }
      std::vector<float> outside(count + 1);
      const std::span<float> values(outside.data() + 1, count);  // in no window, on no particular boundary
      fill(values, env.rank(), ++round);
      comm->all_reduce_sum(values);
      CHECK(wrong_sums(values, env.size(), round) == 0);
    }
  }
}

TEST_CASE("a sum leaves its neighbours alone") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    const Buffer buffer = comm->allocate(50'000 * sizeof(float));
    const auto all = buffer.as<float>();
    for (float& value : all) value = static_cast<float>(env.rank());
    comm->all_reduce_sum(all.subspan(101, 40'000));
    size_t wrong = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool inside = i >= 101 && i < 40'101;
      wrong += all[i] != static_cast<float>(inside ? env.size() * (env.size() - 1) / 2 : env.rank());
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a thousand reductions of changing data stay right") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    CAPTURE(comm->name());
    const Buffer small = comm->allocate(752 * sizeof(float)), large = comm->allocate(9'001 * sizeof(float));
    size_t wrong = 0;
    for (int round = 0; round < 1000; ++round) {
      for (const Buffer* buffer : {&small, &large}) {
        if (buffer == &large && round % 10 != 0) continue;
        fill(buffer->as<float>(), env.rank(), round);
        comm->all_reduce_sum(buffer->as<float>());
        wrong += wrong_sums(buffer->as<float>(), env.size(), round);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("doubles are summed and compared") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    for (const size_t count : {0, 1, 3, 5000, 40'000}) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
        std::vector<double> values(count);
        for (size_t i = 0; i < count; ++i) values[i] = 0.1 * env.rank() + static_cast<double>(i);
        comm->all_reduce(values, op);
        size_t wrong = 0;
        for (size_t i = 0; i < count; ++i) {
          const double sum = test::plain_tree(0, env.size(), [&](int r) { return 0.1 * r + static_cast<double>(i); });
          const double least = static_cast<double>(i), most = 0.1 * (env.size() - 1) + static_cast<double>(i);
          wrong += values[i] != (op == ReduceOp::sum ? sum : op == ReduceOp::min ? least : most);
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("every root can broadcast any length") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    for (int root = 0; root < env.size(); ++root) {
      for (const size_t count : {0, 1, 1001, 700'000}) {
        std::vector<std::byte> bytes(count, std::byte(env.rank()));
        if (env.rank() == root)
          for (size_t i = 0; i < count; ++i) bytes[i] = std::byte(i % 251);
        comm->broadcast(bytes, root);
        size_t wrong = 0;
        for (size_t i = 0; i < count; ++i) wrong += bytes[i] != std::byte(i % 251);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("arrays of different length are gathered by rank") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    const auto length = [](int rank) { return rank == 1 ? 0 : static_cast<size_t>(rank) * 1000 + 300'001; };
    const std::vector<std::byte> mine(length(env.rank()), std::byte(env.rank() + 1));
    const auto gathered = comm->all_gather(mine);
    REQUIRE(gathered.size() == static_cast<size_t>(env.size()));
    for (int r = 0; r < env.size(); ++r) CHECK(gathered[r] == std::vector<std::byte>(length(r), std::byte(r + 1)));
    comm->barrier();
  }
}

TEST_CASE("allocated memory is zero and usable after others went") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    Buffer first = comm->allocate(40'000), second = comm->allocate(40'000);
    for (const float value : second.as<float>()) REQUIRE(value == 0.0f);
    first = Buffer();
    fill(second.as<float>(), env.rank(), 9);
    comm->all_reduce_sum(second.as<float>());
    CHECK(wrong_sums(second.as<float>(), env.size(), 9) == 0);
    CHECK(comm->allocate(0).bytes() == 0);
  }
}

TEST_CASE("the factory chooses by ranks and nodes and knows its names") {
  const MpiEnvironment env;
  std::string why;
  const auto chosen = make_communicator("auto", env, 60, &why);
  CHECK(chosen->name() == (env.size() == 1 ? "serial" : "shm"));
  CHECK(why == (env.size() == 1 ? std::string("one rank") : fmt::format("{} ranks on one node", env.size())));
  CHECK(chosen->rank() == env.rank());
  CHECK(chosen->size() == env.size());
  CHECK(make_communicator("mpi", env, 60, nullptr)->name() == "mpi");
  CHECK_THROWS_WITH_AS(
      make_communicator("gloo", env, 60, nullptr),
      "distributed.backend: unknown communicator gloo, known are auto, serial, shm, mpi, hierarchical, "
      "nccl",
      Error);
  CHECK_THROWS_AS(make_communicator("nccl", env, 60, nullptr), PoliteError);  // needs GPUs
  if (env.size() > 1) CHECK_THROWS_AS(make_communicator("serial", env, 60, nullptr), Error);
}

TEST_CASE("an impossible size is refused on all ranks and the communicator lives on") {
  const MpiEnvironment env;
  const auto comm = make_communicator("shm", env, 60, nullptr);
  CHECK_THROWS_AS(comm->allocate(size_t{1} << 50), PoliteError);
  std::vector<float> values(10, 1);
  comm->all_reduce_sum(values);
  CHECK(values[9] == static_cast<float>(env.size()));
}

TEST_CASE("where the ranks are follows from shared memory") {
  const MpiEnvironment env;
  CHECK(env.local_size() == env.size());
  CHECK(env.local_rank() == env.rank());
  CHECK(env.nodes() == 1);
  CHECK(env.node_index() == 0);
  CHECK(env.allowed_cores() >= 1);
  CHECK(env.threads() >= 1);
  CHECK(env.threads() <= env.allowed_cores());
}

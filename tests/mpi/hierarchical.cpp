// ranks: 2 3 4 6
// links: comm
// Sums in two levels, on nodes of two ranks (the last may have one) that are only pretended. What they share with every
// other communicator is in communicator.cpp.
#include "comm/hierarchical/hierarchical_communicator.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/run_agreed.h"
#include "support/tree.h"

using namespace lockstep;

namespace {

constexpr int kRanksPerNode = 2;

int node_of(int rank, int = 0) { return rank / kRanksPerNode; }

std::unique_ptr<HierarchicalCommunicator> two_levels(const MpiEnvironment& env, double timeout_seconds = 60) {
  return std::make_unique<HierarchicalCommunicator>(env.world(), env.node(), WaitPolicy{timeout_seconds, true});
}

float value_of(int rank, size_t i, int round) {
  const float sign = (rank + static_cast<int>(i % 5) + round) % 2 == 0 ? 1.0f : -1.0f;
  return sign * (i % 2 == 0 ? 3e7f : 1.1f) * static_cast<float>(1 + rank + (round + static_cast<int>(i % 11)) % 7);
}

void fill(std::span<float> values, int rank, int round) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(rank, i, round);
}

size_t wrong_sums(std::span<const float> values, int ranks, int round) {
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i)
    wrong += values[i] != test::plain_tree(0, ranks, [&](int r) { return value_of(r, i, round); });
  return wrong;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const PeerFailure& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t sent_to_other_nodes = 0;  // bytes of messages of this rank

}  // namespace

// In the place of MPI's own function, which it calls: a sum's messages pass through here.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  int bytes = 0, rank = 0, to_in_world = 0;
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  MPI_Type_size(type, &bytes);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, 1, &to, world, &to_in_world);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  if (node_of(to_in_world) != node_of(rank)) sent_to_other_nodes += static_cast<size_t>(count) * bytes;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

TEST_CASE("a node sends twice its share of the array however many ranks it holds") {
  const MpiEnvironment env(node_of);
  const auto comm = two_levels(env);
  const Buffer buffer = comm->allocate(6'000'000);
  const auto nodes = static_cast<double>(env.nodes());
  for (const size_t count : {size_t{1000}, size_t{20'000}, size_t{1'500'000}}) {
    sent_to_other_nodes = 0;
    comm->all_reduce_sum(buffer.as<float>().first(count));
    auto sent = static_cast<double>(sent_to_other_nodes);
    comm->barrier();
    MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_DOUBLE, MPI_SUM, env.node());
    const double bytes = static_cast<double>(count * sizeof(float));
    // Few values go to each node at once; many in two steps. Headers name the collective.
    const bool few = bytes * (nodes - 1) <= static_cast<double>(mpi::TreeExchange::whole_bytes);
    const double promised = few ? (nodes - 1) * bytes : 2 * (nodes - 1) / nodes * bytes;
    CHECK(sent >= promised);
    CHECK(sent <= promised + 0.0001 * bytes + 200 * (nodes - 1));
  }
}

TEST_CASE("pretended nodes are what the environment reports") {
  const MpiEnvironment env(node_of);
  CHECK(env.nodes() == (env.size() + 1) / 2);
  CHECK(env.node_index() == env.rank() / 2);
  CHECK(env.local_rank() == env.rank() % 2);
  const Placement placement = gather_placement(env.world(), env.node());
  for (int r = 0; r < env.size(); ++r) CHECK(placement.node_of[r] == r / 2);
}

TEST_CASE("buckets that start early and late have the bits of the tree") {
  const MpiEnvironment env(node_of);
  const auto comm = two_levels(env);
  constexpr size_t buckets = 7, most = 300'000;
  const size_t sizes[buckets] = {1,      752,     1024, 5000,
                                 16'385, 100'003, most};  // in the header, whole, in parts, in rounds
  const Buffer buffer = comm->allocate(buckets * most * sizeof(float));
  std::vector<float> outside(3000);
  for (int round = 0; round < 20; ++round) {
    for (size_t b = 0; b < buckets; ++b) {
      if ((env.rank() + round + static_cast<int>(b)) % 4 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(300));
      const auto values = buffer.as<float>().subspan(b * most, sizes[b]);
      fill(values, env.rank(), round);
      comm->start_sum(values);
      if (b == 3) {
        fill(outside, env.rank(), round);
        comm->start_sum(outside);
      }
      comm->poll_sums();
    }
    comm->finish_sums();
    size_t wrong = wrong_sums(outside, env.size(), round);
    for (size_t b = 0; b < buckets; ++b)
      wrong += wrong_sums(buffer.as<float>().subspan(b * most, sizes[b]), env.size(), round);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a sum may be done between nodes before anybody waits for it") {
  const MpiEnvironment env(node_of);
  const auto comm = two_levels(env);
  const Buffer buffer = comm->allocate(200'000);
  const auto values = buffer.as<float>();
  fill(values, env.rank(), 3);
  comm->start_sum(values);
  const auto start = std::chrono::steady_clock::now();
  while (wrong_sums(values, env.size(), 3) > 0 && std::chrono::steady_clock::now() - start < std::chrono::seconds(30))
    comm->poll_sums();
  CHECK(wrong_sums(values, env.size(), 3) == 0);
  comm->finish_sums();
}

TEST_CASE("the factory measures on several nodes and says what it found") {
  const MpiEnvironment env(node_of);
  std::string why;
  const auto chosen = make_communicator("auto", env, 60, &why);
  if (env.nodes() == 1) return;
  CHECK((chosen->name() == "mpi" || chosen->name() == "hierarchical"));
  CHECK(contains(why, fmt::format("{} ranks on {} nodes; mpi 16 KB ", env.size(), env.nodes())));
  CHECK(contains(why, "; hierarchical 16 KB "));
  const std::string name(chosen->name());
  for (const auto& theirs : chosen->all_gather(std::as_bytes(std::span(name)))) CHECK(theirs.size() == name.size());
  CHECK(make_communicator("hierarchical", env, 60, nullptr)->name() == "hierarchical");
}

TEST_CASE("where nodes are no branches of the tree the factory takes messages and says why") {
  const MpiEnvironment env([](int rank, int) { return rank % 2; });
  if (env.size() < 4) return;
  for (const char* kind : {"auto", "hierarchical"}) {
    std::string why;
    CHECK(make_communicator(kind, env, 60, &why)->name() == "mpi");
    CHECK(contains(why, "ranks of one node are not neighbours"));
  }
}

TEST_CASE("without room for shared memory gradients live in private memory on all ranks") {
  const MpiEnvironment env(node_of);
  const auto comm = two_levels(env);
  CHECK_THROWS(comm->allocate(size_t{1} << 50));  // nor is there private memory for this
  const Buffer buffer = comm->allocate(4000);     // later windows are still the same to all nodes
  fill(buffer.as<float>(), env.rank(), 1);
  comm->all_reduce_sum(buffer.as<float>());
  CHECK(wrong_sums(buffer.as<float>(), env.size(), 1) == 0);
}

TEST_CASE("ranks of different nodes in different collectives are told which") {
  const MpiEnvironment env(node_of);
  if (env.nodes() == 1) return;
  const auto comm = two_levels(env, 20);
  std::vector<float> values(100);
  comm->barrier();
  const std::string text = error_of([&] { env.node_index() == 0 ? comm->barrier() : comm->all_reduce_sum(values); });
  CHECK(contains(text, "collective #2 differs between ranks"));
  CHECK(contains(text, "barrier"));
  CHECK(contains(text, "all_reduce_sum of 100"));
  MPI_Barrier(env.world());
}

TEST_CASE("ranks of one node in different collectives are told which and by their names in the world") {
  const MpiEnvironment env(node_of);
  const auto comm = two_levels(env, 20);
  std::vector<float> values(100);
  comm->barrier();
  if (env.node_index() == 0 && env.local_size() == 2) {
    const std::string text = error_of([&] { env.rank() == 0 ? comm->barrier() : comm->all_reduce_sum(values); });
    CHECK(contains(text, "rank 0 calls barrier"));
    CHECK(contains(text, "rank 1 calls all_reduce_sum of 100"));
  }
  MPI_Barrier(env.world());
}

TEST_CASE("a node that comes too late is named by its ranks") {
  const MpiEnvironment env(node_of);
  if (env.nodes() == 1) return;
  const auto comm = two_levels(env, 1);
  std::vector<float> values(100);
  comm->barrier();
  const bool late = env.node_index() == 1;
  if (late) std::this_thread::sleep_for(std::chrono::seconds(4));
  if (!late) {
    const std::string text = error_of([&] { comm->all_reduce_sum(values); });
    CAPTURE(text);
    // Owner 0 of each node waits for rank 2; the node's other rank hears of it.
    CHECK(contains(text, "waited 1 s in all_reduce_sum #2 for rank 2"));
  }
  MPI_Barrier(env.world());
}

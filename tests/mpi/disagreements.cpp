// ranks: 2 3
// links: comm
// Collectives that differ in order, size, type or bucket on one rank: an error on every rank that names both sides, on
// each communicator, never a hang and never a wrong sum. Rank 1 is the one that is wrong.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/mpi/meeting.h"
#include "comm/mpi/mpi_communicator.h"

using namespace lockstep;

namespace {

constexpr const char* kKinds[] = {"shm", "mpi"};

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const PeerFailure& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Rank 1 does `wrong` where the others do `right`; all must hear of both.
void check_disagreement(const std::function<void(Communicator&, std::span<float>)>& right,
                        const std::function<void(Communicator&, std::span<float>)>& wrong,
                        const std::vector<std::string>& told) {
  const MpiEnvironment env;
  for (const char* kind : kKinds) {
    const auto comm = make_communicator(kind, env, 30, nullptr);
    comm->activity().name_buckets({"4.weight", "0.weight"});
    comm->activity().step(7);
    const Buffer gradients = comm->allocate(40'000 * sizeof(float));
    comm->barrier();
    const auto start = std::chrono::steady_clock::now();
    const std::string text = error_of([&] { (env.rank() == 1 ? wrong : right)(*comm, gradients.as<float>()); });
    CAPTURE(text);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
    // A rank that agrees with all it sees may hear of it from the others.
    CHECK((contains(text, "differs between ranks") || contains(text, "gave up")));
    CHECK(contains(text, "rank 1"));
    for (const std::string& words : told) CHECK(contains(text, words));
    MPI_Barrier(env.world());
  }
}

}  // namespace

TEST_CASE("another collective is named on both sides with its step") {
  check_disagreement([](Communicator& c, std::span<float> g) { c.all_reduce_sum(g.first(100)); },
                     [](Communicator& c, std::span<float>) { c.barrier(); },
                     {"all_reduce_sum of 100 (step 7)", "barrier (step 7)"});
  // What a rank doesn't expect is longer than what it does.
  check_disagreement([](Communicator& c, std::span<float> g) { c.all_reduce_sum(g); },
                     [](Communicator& c, std::span<float>) { c.barrier(); },
                     {"all_reduce_sum of 40000", "barrier (step 7)"});
}

TEST_CASE("another size is named on both sides") {
  check_disagreement([](Communicator& c, std::span<float> g) { c.all_reduce_sum(g.first(8)); },
                     [](Communicator& c, std::span<float> g) { c.all_reduce_sum(g.first(9)); },
                     {"all_reduce_sum of 8", "all_reduce_sum of 9"});
  check_disagreement([](Communicator& c, std::span<float> g) { c.all_reduce_sum(g.first(30'000)); },
                     [](Communicator& c, std::span<float> g) { c.all_reduce_sum(g.first(29'999)); },
                     {"all_reduce_sum of 30000", "all_reduce_sum of 29999"});
}

TEST_CASE("another type is named on both sides") {
  check_disagreement([](Communicator& c, std::span<float> g) { c.all_reduce_sum(g.first(4)); },
                     [](Communicator& c, std::span<float>) {
                       double values[4] = {};
                       c.all_reduce(values, ReduceOp::sum);
                     },
                     {"all_reduce_sum of 4", "all_reduce of 4"});
  check_disagreement(
      [](Communicator& c, std::span<float> g) { c.all_reduce_sum_in(WireFormat::bf16, g.first(20'000)); },
      [](Communicator& c, std::span<float> g) { c.all_reduce_sum_in(WireFormat::fp16, g.first(20'000)); },
      {"all_reduce_sum_bf16 of 20000", "all_reduce_sum_fp16 of 20000"});
}

TEST_CASE("another operator or root is an error") {
  check_disagreement(
      [](Communicator& c, std::span<float>) {
        double value = 0;
        c.all_reduce({&value, 1}, ReduceOp::sum);
      },
      [](Communicator& c, std::span<float>) {
        double value = 0;
        c.all_reduce({&value, 1}, ReduceOp::max);
      },
      {"all_reduce of 1"});
  check_disagreement([](Communicator& c, std::span<float> g) { c.broadcast(std::as_writable_bytes(g.first(2)), 0); },
                     [](Communicator& c, std::span<float> g) { c.broadcast(std::as_writable_bytes(g.first(2)), 1); },
                     {"broadcast of 8"});
}

TEST_CASE("buckets of equal size in another order are named with their first parameters") {
  const auto reduce = [](Communicator& c, std::span<float> g, int64_t bucket) {
    c.activity().bucket(bucket);
    c.all_reduce_sum(g.subspan(static_cast<size_t>(bucket) * 2048, 2048));
  };
  check_disagreement([&](Communicator& c, std::span<float> g) { reduce(c, g, 0); },
                     [&](Communicator& c, std::span<float> g) { reduce(c, g, 1); },
                     {"step 7, bucket 0 from 4.weight", "step 7, bucket 1 from 0.weight"});
}

TEST_CASE("buckets started in another order are found before a value is wrong") {
  const auto reduce = [](Communicator& c, std::span<float> g, std::vector<int64_t> order) {
    for (const int64_t bucket : order) {
      c.activity().bucket(bucket);
      c.start_sum(g.subspan(static_cast<size_t>(bucket) * 2048, 2048));
      c.poll_sums();
    }
    c.activity().bucket(-1);
    c.finish_sums();
  };
  check_disagreement(
      [&](Communicator& c, std::span<float> g) {
        reduce(c, g, {0, 1});
      },
      [&](Communicator& c, std::span<float> g) {
        reduce(c, g, {1, 0});
      },
      {"bucket 0 from 4.weight", "bucket 1 from 0.weight"});
}

TEST_CASE("one rank a step behind is named with its step") {
  check_disagreement([](Communicator& c, std::span<float>) { c.barrier(); },
                     [](Communicator& c, std::span<float>) {
                       c.activity().evaluation(6);
                       c.barrier();
                     },
                     {"barrier (step 7)", "barrier (the evaluation after step 6)"});
}

TEST_CASE("a rank that comes too late is named with step and bucket and the preparation has its own limit") {
  const MpiEnvironment env;
  for (const char* kind : kKinds) {
    const auto comm = make_communicator(kind, env, 1, nullptr);
    comm->activity().prepare(60);
    if (env.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
    comm->barrier();  // three seconds late, and still in time
    comm->activity().name_buckets({"4.weight"});
    comm->activity().step(3);
    comm->activity().bucket(0);
    std::vector<float> values(100);
    if (env.rank() != 1) {
      const std::string text = error_of([&] { comm->all_reduce_sum(values); });
      CAPTURE(text);
      CHECK(contains(text, "all_reduce_sum #2 (step 3, bucket 0 from 4.weight)"));
      CHECK(contains(text, "for rank 1"));
      CHECK_FALSE(contains(text, "for ranks"));
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(4));
    }
    MPI_Barrier(env.world());
  }
}

TEST_CASE("a rank that stops answering inside a sum on MPI ends the waits of the others") {
  const MpiEnvironment env;
  std::vector<float> values(3'000'000, 1.0f);
  constexpr size_t round = 30'000;
  if (env.rank() == 1) {  // comes to the sum like everyone, sends the first slices, and then nothing
    const auto ranks = static_cast<size_t>(env.size());
    const std::vector<mpi::Piece> pieces(ranks, mpi::Piece{0, round / ranks * sizeof(float)});
    mpi::Meeting meeting(mpi::OwnedComm::duplicate(env.world()), 30, round * sizeof(float));
    meeting.meet(Collective::all_reduce_sum, values.size(), 0,
                 {reinterpret_cast<const std::byte*>(values.data()), pieces});
    std::this_thread::sleep_for(std::chrono::seconds(4));
    MPI_Barrier(env.world());
    return;
  }
  auto comm = std::make_unique<MpiCommunicator>(env.world(), MpiOptions{.timeout_seconds = 1, .chunk_limit = round});
  const auto start = std::chrono::steady_clock::now();
  const std::string text = error_of([&] { comm->all_reduce_sum(values); });
  CAPTURE(text);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(3500));
  CHECK((contains(text, "waited 1 s in all_reduce_sum #1 for rank 1") || contains(text, "gave up: waited 1 s")));
  CHECK(error_of([&] { comm->barrier(); }) == "barrier after a failed collective");
  MPI_Barrier(env.world());
}

TEST_CASE("a rank that leaves with an exception ends the waits of the others on MPI too") {
  const MpiEnvironment env;
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&] {
    const auto comm = make_communicator("mpi", env, 60, nullptr);
    comm->activity().step(2);
    comm->barrier();
    if (env.rank() == 1) throw_error("disk full");
    comm->barrier();
  };
  if (env.rank() == 1) {
    CHECK_THROWS_WITH_AS(work(), "disk full", Error);
  } else {
    const std::string text = error_of(work);
    CAPTURE(text);
    CHECK(contains(text, "stopped waiting in barrier #2 (step 2): rank "));
    CHECK((contains(text, "rank 1 stopped with an error in step 2") || contains(text, "rank 2 stopped")));
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  MPI_Barrier(env.world());
}

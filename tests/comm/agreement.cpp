// The texts of failures, who speaks when several ranks fail, and the communicator of one rank.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "comm/run_agreed.h"
#include "comm/serial_communicator.h"

using namespace lockstep;

TEST_CASE("the first failing rank speaks and is named unless all said the same") {
  using Failures = std::vector<std::optional<std::string>>;
  CHECK(agreed_failure(Failures{std::nullopt, std::nullopt}) == std::nullopt);
  CHECK(agreed_failure(Failures{"bad key", "bad key"}) == "bad key");
  CHECK(agreed_failure(Failures{std::nullopt, "no file", "no file"}) == "rank 1: no file");
  CHECK(agreed_failure(Failures{"a", "b"}) == "rank 0: a");
}

TEST_CASE("agreed work throws a polite error with the text or nothing") {
  SerialCommunicator comm;
  CHECK_NOTHROW(run_agreed(comm, [] {}));
  CHECK_THROWS_WITH_AS(run_agreed(comm, [] { throw_error("line {}", 3); }), "line 3", PoliteError);
  CHECK_THROWS_WITH_AS(run_agreed(comm, [] { throw Error(""); }), "", PoliteError);
  CHECK_THROWS_AS(run_agreed(comm, [] { throw PeerFailure("gone"); }), PeerFailure);
}

TEST_CASE("fingerprints keep kind and count and name a mismatch") {
  const auto a = Fingerprint::make(Collective::all_reduce_sum, 752);
  const auto b = Fingerprint::make(Collective::barrier, 0);
  CHECK(a.kind() == Collective::all_reduce_sum);
  CHECK(a.count() == 752);
  CHECK(describe_mismatch(42, 0, a, 1, b) ==
        "collective #42 differs between ranks: rank 0 calls all_reduce_sum of 752, rank 1 calls barrier");
}

TEST_CASE("ranks are listed as in a sentence") {
  const int ranks[] = {1, 2, 5};
  CHECK(name_ranks(ranks, 1) == "rank 1");
  CHECK(name_ranks(ranks, 2) == "ranks 1 and 2");
  CHECK(name_ranks(ranks, 3) == "ranks 1, 2 and 5");
}

TEST_CASE("one rank keeps its values in every collective") {
  SerialCommunicator comm;
  std::vector<float> values = {1, 2};
  std::vector<double> sums = {3};
  comm.all_reduce_sum(values);
  comm.all_reduce(sums, ReduceOp::max);
  comm.broadcast(std::as_writable_bytes(std::span(values)), 0);
  CHECK(values == std::vector<float>{1, 2});
  CHECK(sums[0] == 3);
  const auto gathered = comm.all_gather(std::as_bytes(std::span(values)));
  REQUIRE(gathered.size() == 1);
  CHECK(gathered[0].size() == 8);
  CHECK(comm.allocate(100).bytes() == 100);
}

// Ranks of several nodes and the GPUs they see.
#include <doctest/doctest.h>

#include "comm/gpu_placement.h"

using namespace lockstep;

namespace {

RankGpus rank(int node, int local_rank, const std::vector<std::string>& uuids) {
  RankGpus made{.node = node, .local_rank = local_rank, .host = node == 0 ? "n1" : "n2", .visible = {}};
  for (const std::string& uuid : uuids)
    made.visible.push_back({.name = "H100", .bus_id = "0000:01:00.0", .uuid = uuid});
  return made;
}

}  // namespace

TEST_CASE("each node's ranks take their node's GPUs") {
  const std::vector<std::string> first = {"a", "b"}, second = {"c", "d"};
  const std::vector<RankGpus> ranks = {rank(0, 0, first), rank(1, 0, second), rank(0, 1, first), rank(1, 1, second)};
  const GpuPlacement placement = place_on_gpus(ranks, false);
  CHECK(placement.choices[0].index == 0);
  CHECK(placement.choices[1].index == 0);
  CHECK(placement.choices[2].index == 1);
  CHECK(placement.choices[3].index == 1);
  CHECK(placement.shared == "");
}

TEST_CASE("a GPU that two containers call theirs is found by its UUID") {
  const std::vector<RankGpus> ranks = {rank(0, 0, {"a"}), rank(1, 0, {"a"})};  // no shared memory: two nodes to MPI
  CHECK(place_on_gpus(ranks, false).shared == "ranks 0 and 1 hold the same GPU, H100 (0000:01:00.0 on n2)");
}

TEST_CASE("ranks that share by permission are named too") {
  const std::vector<RankGpus> ranks = {rank(0, 0, {"a"}), rank(0, 1, {"a"})};
  CHECK(place_on_gpus(ranks, false).choices[1].index == -1);
  CHECK(place_on_gpus(ranks, true).choices[1].index == 0);
  CHECK(place_on_gpus(ranks, true).shared != "");
}

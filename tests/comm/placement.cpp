// On which placements the sums of nodes are branches of the tree of sums.
#include "comm/hierarchical/placement.h"

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

namespace {

std::string obstacle(std::vector<int> node_of) { return obstacle_to_sums_by_node({std::move(node_of)}); }
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("equal powers of two of neighbours can be summed by node") {
  CHECK(obstacle({0}) == "");
  CHECK(obstacle({0, 0, 0}) == "");  // one node has no one to differ from
  CHECK(obstacle({0, 1, 2}) == "");
  CHECK(obstacle({0, 0, 1, 1, 2, 2}) == "");
  CHECK(obstacle({0, 0, 0, 0, 1, 1, 1, 1}) == "");
}

TEST_CASE("the last node may hold fewer ranks") {
  CHECK(obstacle({0, 0, 1}) == "");
  CHECK(obstacle({0, 0, 0, 0, 1, 1, 1}) == "");
}

TEST_CASE("other placements are refused with the reason") {
  CHECK(contains(obstacle({0, 1, 0, 1}), "not neighbours"));
  CHECK(contains(obstacle({0, 0, 0, 1, 1, 1}), "3 ranks on a node are not a power of two"));
  CHECK(contains(obstacle({0, 0, 1, 2, 2}), "different numbers of ranks, 2 and 1"));
  CHECK(contains(obstacle({0, 1, 1}), "the last node holds more ranks than the others, 2 and 1"));
}

TEST_CASE("a placement counts its nodes and ranks") {
  const Placement placement{{0, 0, 1, 1, 2}};
  CHECK(placement.nodes() == 3);
  CHECK(placement.ranks_per_node() == std::vector<int>{2, 2, 1});
  CHECK(placement.fewest() == 1);
}

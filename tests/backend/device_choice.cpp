// Which GPU a rank takes, as a table over what launchers show their tasks.
#include <doctest/doctest.h>

#include "backend/device_choice.h"
#include "core/error.h"

using namespace lockstep;

namespace {

using Seen = std::vector<std::vector<std::string>>;

std::vector<int> indices(const Seen& seen, bool oversubscribe = false) {
  std::vector<int> found;
  for (const DeviceChoice& choice : choose_devices(seen, oversubscribe)) found.push_back(choice.index);
  return found;
}

Seen all_see(size_t ranks, const std::vector<std::string>& gpus) { return Seen(ranks, gpus); }

const std::vector<std::string> kNode = {"GPU-aa00", "GPU-ab11", "GPU-bb22", "GPU-cc33"};

std::vector<int> shown(const char* text) { return visible_devices(text, kNode).indices; }
std::string problem(const char* text) { return visible_devices(text, kNode).problem; }

}  // namespace

TEST_CASE("ranks that see the same GPUs take them in order") {
  CHECK(indices(all_see(4, {"a", "b", "c", "d"})) == std::vector<int>{0, 1, 2, 3});
  CHECK(indices(all_see(2, {"a", "b", "c", "d"})) == std::vector<int>{0, 1});
  CHECK(indices(all_see(1, {"a"})) == std::vector<int>{0});
  CHECK(indices(all_see(4, {"d", "c", "b", "a"})) == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a rank that is shown one GPU takes it whatever its local rank") {
  CHECK(indices({{"a"}, {"b"}, {"c"}, {"d"}}) == std::vector<int>{0, 0, 0, 0});
  CHECK(pick_device(3, Seen{{"a"}, {"b"}, {"c"}, {"d"}}, false) == 0);
}

TEST_CASE("subsets that overlap are matched so that nobody is left without") {
  CHECK(indices({{"a", "b"}, {"a"}}) == std::vector<int>{1, 0});
  CHECK(indices({{"a", "b"}, {"b", "c"}, {"a"}, {"c", "d"}}) == std::vector<int>{1, 1, 0, 1});
  CHECK(indices({{"b", "a"}, {"a", "b"}}) == std::vector<int>{0, 0});
}

TEST_CASE("more ranks than GPUs is an error unless they may share") {
  const Seen seen = all_see(4, {"a", "b"});
  CHECK(indices(seen) == std::vector<int>{0, 1, -1, -1});
  CHECK(pick_device(1, seen, false) == 1);
  CHECK_THROWS_WITH_AS(
      pick_device(3, seen, false),
      "device.kind cuda: 4 ranks on this node, but local rank 3 sees 2 GPU(s), all taken by other ranks: "
      "start as many ranks per node as GPUs, or set device.oversubscribe: true to let ranks share one",
      Error);
  CHECK(indices(seen, true) == std::vector<int>{0, 1, 0, 1});
  for (const DeviceChoice& choice : choose_devices(seen, true)) CHECK(choice.shared);
  CHECK_FALSE(choose_devices(all_see(2, {"a", "b"}), true)[0].shared);
}

TEST_CASE("ranks that are all shown the same single GPU are no ranks with one each") {
  CHECK(indices(all_see(2, {"a"})) == std::vector<int>{0, -1});
  CHECK_THROWS_AS(pick_device(1, all_see(2, {"a"}), false), Error);
}

TEST_CASE("a rank without any GPU is an error even where they may be shared") {
  CHECK(indices({{"a"}, {}}, true) == std::vector<int>{0, -1});
  CHECK_THROWS_WITH(pick_device(1, Seen{{"a"}, {}}, true),
                    "device.kind cuda: local rank 1 sees no GPU; lockstep doctor says what it found");
}

TEST_CASE("CUDA_VISIBLE_DEVICES as CUDA reads it") {
  CHECK(shown(nullptr) == std::vector<int>{0, 1, 2, 3});
  CHECK(shown("0") == std::vector<int>{0});
  CHECK(shown("2,3") == std::vector<int>{2, 3});
  CHECK(shown("3, 1, 0") == std::vector<int>{3, 1, 0});
  CHECK(shown("GPU-bb22") == std::vector<int>{2});
  CHECK(shown("GPU-bb,0") == std::vector<int>{2, 0});
  CHECK(shown("0,GPU-cc33,1") == std::vector<int>{0, 3, 1});
  CHECK(shown("1,-1,2") == std::vector<int>{1});
  for (const char* fine : {"0", "2,3", "GPU-bb22", "1,-1,2"}) CHECK(problem(fine).empty());
}

TEST_CASE("what CUDA_VISIBLE_DEVICES hides is said") {
  for (const char* nothing : {"", "  ", "-1", "9", "GPU-a", "GPU-zz", "NoDevFiles", "0,0", "1,GPU-ab11"}) {
    CAPTURE(nothing);
    CHECK(shown(nothing).empty());
    CHECK_FALSE(problem(nothing).empty());
  }
  CHECK(problem("") == "CUDA_VISIBLE_DEVICES is empty, which hides every GPU");
  CHECK(shown("0,9,1") == std::vector<int>{0});
  CHECK(problem("0,9,1") ==
        "CUDA_VISIBLE_DEVICES=0,9,1: '9' is none of the 4 GPU(s) here; it and all after it are hidden");
  CHECK(problem("0,0") == "CUDA_VISIBLE_DEVICES=0,0 names a GPU twice, so CUDA shows none");
}

TEST_CASE("two ranks on one GPU are named whatever their hosts are called") {
  const Gpu a{.name = "H100", .bus_id = "0000:3b:00.0", .uuid = "GPU-a"},
      b{.name = "H100", .bus_id = "0000:3b:00.0", .uuid = "GPU-b"};
  // Equal slots on two nodes are two GPUs; one GPU seen from two containers is one.
  CHECK(shared_gpu_text(std::vector<PlacedGpu>{{0, "n1", a}, {1, "n2", b}}) == "");
  CHECK(shared_gpu_text(std::vector<PlacedGpu>{{0, "c1", a}, {1, "n1", b}, {5, "c2", a}}) ==
        "ranks 0 and 5 hold the same GPU, H100 (0000:3b:00.0 on c2)");
}

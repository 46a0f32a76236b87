// Batch arithmetic, world_size against the launch, and where relative paths start.
#include "train/config_batch.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "config_support.h"
#include "train/config_path.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the global batch is batch_size times world_size times accumulate") {
  const Config config = parse("train: {batch_size: 16, accumulate: 2}\n");
  CHECK_EQ(resolve_batch(config.train, 2).line(), "global batch 64 = batch_size 16 x world_size 2 x accumulate 2");
  CHECK_EQ(resolve_batch(parse("").train, 1).line(), "global batch 32 = batch_size 32 x world_size 1 x accumulate 1");
}

TEST_CASE("virtual ranks take the place of world_size") {
  const Config config = parse("train: {batch_size: 16, accumulate: 2, virtual_ranks: 8}\n");
  for (const int64_t world_size : {1, 2, 8})
    CHECK_EQ(resolve_batch(config.train, world_size).line(),
             "global batch 256 = batch_size 16 x virtual_ranks 8 x accumulate 2");
  CHECK(refusal("train: {virtual_ranks: 6}\n")
            .ends_with("train.virtual_ranks must be a power of two: their gradients are added in a binary tree"));
  CHECK(refusal("train: {virtual_ranks: 4}\ndistributed: {sync: false}\n")
            .ends_with("gives every number of ranks the same bits; distributed.sync: false depends on it"));
}

TEST_CASE("a global batch is split over ranks and micro-steps") {
  const Config config = parse("train: {global_batch_size: 32, accumulate: 4}\n");
  CHECK_FALSE(config.train.batch_size.has_value());
  CHECK_EQ(resolve_batch(config.train, 2).batch_size, 4);
  CHECK_EQ(resolve_batch(config.train, 8).line(), "global batch 32 = batch_size 1 x world_size 8 x accumulate 4");
  CHECK_EQ(error_of([&] { resolve_batch(config.train, 3); }),
           "config.yaml:3:28: train.global_batch_size 32 is not divisible by world_size 3 x accumulate 4 = 12; "
           "nearest: 24 or 36");
  CHECK_EQ(error_of([&] { resolve_batch(config.train, 16); }),
           "config.yaml:3:28: train.global_batch_size 32 is not divisible by world_size 16 x accumulate 4 = 64; "
           "nearest: 64");
}

TEST_CASE("one of batch_size and global_batch_size is given") {
  CHECK_EQ(refusal("train: {global_batch_size: 32, batch_size: 4}\n"),
           "config.yaml:3:28: train.global_batch_size is given beside train.batch_size; give one of them (null takes "
           "one back)");
}

TEST_CASE("a batch that overflows is an error") {
  TrainConfig train;
  train.batch_size = int64_t{1} << 30;
  train.accumulate = int64_t{1} << 30;
  CHECK_EQ(error_of([&] { resolve_batch(train, 8); }), "the global batch is too large");
}

TEST_CASE("world_size is checked against the launch") {
  const Config config = parse("distributed: {world_size: 4}\n");
  CHECK_EQ(error_of([&] { check_world_size(config, 4); }), "accepted");
  CHECK_EQ(error_of([&] { check_world_size(config, 2); }),
           "config.yaml:3:27: config says distributed.world_size 4 but 2 ranks were launched (mpirun -np 4 ...)");
  CHECK_EQ(error_of([&] { check_world_size(config, 1); }),
           "config.yaml:3:27: config says distributed.world_size 4 but 1 rank was launched (mpirun -np 4 ...)");
  CHECK_EQ(error_of([&] { check_world_size(parse("", {"distributed.world_size=2"}), 3); }),
           "--set distributed.world_size: config says distributed.world_size 2 but 3 ranks were launched (mpirun -np 2 "
           "...)");
  CHECK_EQ(error_of([&] { check_world_size(parse(""), 7); }), "accepted");
}

TEST_CASE("relative paths start at the directory that holds datasets or configs") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / "lockstep_config_path_test";
  fs::create_directories(root / "project" / "configs" / "articles");
  fs::create_directories(root / "data_only" / "deep" / "datasets");
  Config config;
  config.path = (root / "project" / "configs" / "articles" / "toy.yaml").string();
  CHECK_EQ(resolve_path(config, "datasets/x.gz"), (root / "project" / "datasets" / "x.gz").string());
  CHECK_EQ(resolve_path(config, "../x"), (root / "x").string());
  CHECK_EQ(resolve_path(config, "/abs/./x"), "/abs/x");
  config.path = (root / "project" / "mine.yaml").string();
  CHECK_EQ(resolve_path(config, "runs/a"), (root / "project" / "runs" / "a").string());
  config.path = (root / "data_only" / "deep" / "mine.yaml").string();
  CHECK_EQ(project_root(config.path), (root / "data_only" / "deep").string());
  fs::remove_all(root);
}

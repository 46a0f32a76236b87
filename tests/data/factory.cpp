// The factory: kinds, subsets, and the place in the config file in front of every message.
#include "data/factory.h"

#include <doctest/doctest.h>

#include "data/files.h"
#include "data/rows.h"
#include "data/synthetic.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

DatasetSettings identity(int64_t samples) {
  DatasetSettings settings;
  settings.kind = "synthetic";
  settings.name = "identity";
  settings.samples = samples;
  settings.where = "run.yaml:7:3";
  return settings;
}

std::string error(const DatasetSettings& settings) {
  return error_of([&] { make_dataset(settings, 0); });
}

}  // namespace

TEST_CASE("factory takes a contiguous subset") {
  DatasetSettings settings = identity(229);
  settings.count = 128;
  const auto train = make_dataset(settings, 0);
  settings.first = 128;
  settings.count = -1;
  const auto val = make_dataset(settings, 0);
  CHECK_EQ(train->size(), 128);
  CHECK_EQ(val->size(), 101);
  CHECK_EQ(read_rows(*train, {0, 127}).x, std::vector<float>{0, 127});
  CHECK_EQ(read_rows(*val, {0, 100}).x, std::vector<float>{128, 228});
  CHECK_EQ(read_rows(*val, {0, 100}).targets, std::vector<float>{128, 228});
  CHECK_EQ(error_of([&] { read_rows(*val, {101}); }), "row 101 of a data set of 101 samples");
}

TEST_CASE("factory refuses subsets outside the data set or without rows") {
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 11}, {5, 6}, {10, -1}, {11, 1}, {-1, 2}, {0, 0}, {0, -2}, {1, INT64_MAX}, {INT64_MAX, 1}}) {
    DatasetSettings settings = identity(10);
    settings.first = first;
    settings.count = count;
    CHECK_EQ(error(settings),
             fmt::format("run.yaml:7:3: first and count: expected rows within the 10 samples, and at least one, found "
                         "first {} count {}",
                         first, count));
  }
}

TEST_CASE("factory puts the config file's place before every message") {
  DatasetSettings settings = identity(10);
  settings.kind = "idxx";
  CHECK_EQ(error(settings), "run.yaml:7:3: kind: expected one of idx, csv, npy, synthetic, toy, found 'idxx'");
  settings.kind = "csv";
  settings.file = "/nonexistent.csv";
  CHECK_EQ(error(settings),
           "run.yaml:7:3: /nonexistent.csv: no such file; relative paths start at the folder that holds configs/ or "
           "datasets/");
  settings = identity(10);
  settings.std = 0.0;
  CHECK_EQ(error(settings), "run.yaml:7:3: normalize.std: expected a number above 0, found 0");
}

TEST_CASE("factory reads each file kind") {
  const TempDir dir;
  DatasetSettings settings;
  settings.kind = "idx";
  settings.images = dir.write("i", idx({2, 2, 2}, ramp(8)));
  settings.labels = dir.write("l", idx({2}, ramp(2)));
  CHECK_EQ(make_dataset(settings, 0)->size(), 2);
  settings.kind = "csv";
  settings.file = dir.write("c", "1,2\n3,4\n5,6\n");
  CHECK_EQ(make_dataset(settings, 0)->size(), 3);
  settings.kind = "npy";
  CHECK_EQ(error(settings), "kind npy: expected the keys x and y, found neither");
  settings.seed_per_rank = true;
  CHECK_EQ(error(settings), "seed_per_rank: every rank reads the same files, found it with kind npy");
}

TEST_CASE("factory draws from the script's generator when given one") {
  DatasetSettings settings;
  settings.kind = "toy";
  settings.augment = 4;
  settings.seed = 123;
  Generator script(123);
  CHECK_EQ(read_all(*make_dataset(settings, 0, script)).x, read_all(*make_dataset(settings, 0)).x);
  CHECK_NE(read_all(*make_dataset(settings, 0, script)).x, read_all(*make_dataset(settings, 0)).x);
}

TEST_CASE("factory turns labels into values for a loss that wants them") {
  DatasetSettings settings;
  settings.kind = "toy";
  settings.targets = WantedTargets::values;
  CHECK_EQ(read_all(*make_dataset(settings, 0)).targets, std::vector<float>{0, 0, 0, 1, 1});
}

TEST_CASE("factory refuses a set that memory can't hold") {
  DatasetSettings settings = identity(1);
  settings.name = "random";
  settings.samples = int64_t{1} << 50;
  settings.shape = {4096};
  settings.classes = 2;
  CHECK_EQ(error(settings), "run.yaml:7:3: the data set does not fit into memory");
}

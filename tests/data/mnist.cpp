// The MNIST files of datasets/ are the real ones, and are read as they should be.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "data/factory.h"
#include "data/rows.h"
#include "data/sha256.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kRoot = std::string(LOCKSTEP_SOURCE_DIR) + "/datasets/";

DatasetSettings files(const std::string& set, const std::string& part) {
  DatasetSettings settings;
  settings.kind = "idx";
  settings.images = kRoot + set + "/" + part + "-images-idx3-ubyte.gz";
  settings.labels = kRoot + set + "/" + part + "-labels-idx1-ubyte.gz";
  settings.classes = 10;
  return settings;
}

struct Moments {
  double mean = 0, std = 0;
};

Moments pixel_moments(const Dataset& dataset) {
  const std::vector<float> x = read_all(dataset).x;
  double sum = 0, squares = 0;
  for (double value : x) {
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(x.size());
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n))};
}

}  // namespace

TEST_CASE("mnist has 60000 and 10000 samples with the well-known moments") {
  const auto train = make_dataset(files("mnist", "train"), 0);
  CHECK_EQ(train->size(), 60000);
  CHECK_EQ(train->sample_shape().str(), "[1, 28, 28]");
  CHECK_EQ(make_dataset(files("mnist", "t10k"), 0)->size(), 10000);
  const Moments moments = pixel_moments(*train);
  CHECK_LT(std::fabs(moments.mean - 0.1307), 5e-5);
  CHECK_LT(std::fabs(moments.std - 0.3081), 5e-5);
  CHECK_EQ(read_rows(*train, {0, 1, 2, 3, 4, 59999}).labels, std::vector<int64_t>{5, 0, 4, 1, 9, 8});
}

TEST_CASE("mnist normalised with its own moments has mean 0 and deviation 1") {
  DatasetSettings settings = files("mnist", "train");
  settings.mean = 0.1307;
  settings.std = 0.3081;
  const Moments moments = pixel_moments(*make_dataset(settings, 0));
  CHECK_LT(std::fabs(moments.mean), 2e-4);
  CHECK_LT(std::fabs(moments.std - 1), 2e-4);
}

TEST_CASE("mnist files have their recorded checksums") {
  std::ifstream sums(kRoot + "SHA256SUMS");
  int checked = 0;
  for (std::string sum, file; sums >> sum >> file;) {
    if (!file.starts_with("mnist/")) continue;
    CHECK_EQ(sha256_of_file(kRoot + file), sum);
    ++checked;
  }
  CHECK_EQ(checked, 4);
}

TEST_CASE("fashion-mnist is read where it was fetched") {
  if (!std::filesystem::exists(kRoot + "fashion-mnist")) {
    MESSAGE("skipped: no datasets/fashion-mnist; get it with datasets/fetch fashion-mnist");
    return;
  }
  const auto train = make_dataset(files("fashion-mnist", "train"), 0);
  CHECK_EQ(train->size(), 60000);
  CHECK_EQ(read_rows(*train, {0, 1, 2, 3}).labels, std::vector<int64_t>{9, 0, 0, 3});
  CHECK_LT(std::fabs(pixel_moments(*train).mean - 0.2860), 5e-5);
}

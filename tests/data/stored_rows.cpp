// Where data sets say that their rows lie: read there, they are what read() gives.
#include <doctest/doctest.h>

#include "data/factory.h"
#include "data/files.h"
#include "data/images.h"
#include "data/rows.h"
#include "support/image_files.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

void compare(const Dataset& dataset) {
  const Rows expected = read_all(dataset);
  const StoredRows stored = dataset.stored().value();
  REQUIRE(stored.count == dataset.size());
  REQUIRE(stored.sample_numel == dataset.sample_shape().numel());
  REQUIRE((stored.floats == nullptr) != (stored.bytes == nullptr));
  REQUIRE((stored.labels == nullptr) != (stored.values == nullptr));
  for (size_t i = 0; i < expected.x.size(); ++i)
    CHECK(expected.x[i] == (stored.bytes != nullptr ? stored.table[stored.bytes[i]] : stored.floats[i]));
  for (size_t i = 0; i < expected.labels.size(); ++i) CHECK(expected.labels[i] == stored.labels[i]);
  for (size_t i = 0; i < expected.targets.size(); ++i) CHECK(expected.targets[i] == stored.values[i]);
  CHECK(stored.value_width == dataset.target_width());
}

DatasetSettings images(const TempDir& dir) {
  return {.kind = "idx",
          .images = dir.write("images", idx({6, 3, 4}, ramp(72))),
          .labels = dir.write("labels", idx({6}, ramp(6))),
          .mean = 0.1307,
          .std = 0.3081};
}

}  // namespace

TEST_CASE("stored rows are what the data set reads") {
  const TempDir dir;
  const auto bytes = make_dataset(images(dir), 0);
  compare(*bytes);
  CHECK(bytes->stored()->bytes != nullptr);
  CHECK(bytes->stored()->all_bytes() == 72 + 6 * sizeof(int64_t) + 256 * sizeof(float));
  const auto table = make_dataset({.kind = "csv", .file = dir.write("t.csv", "1,2,0.5\n3,4,1.5\n5,6,2.5\n")}, 0);
  compare(*table);
  CHECK(table->stored()->all_bytes() == 9 * sizeof(float));
  compare(*make_dataset(
      {.kind = "synthetic", .name = "normal_regression", .samples = 9, .shape = {3}, .target_width = 4}, 0));
}

TEST_CASE("stored rows of a part are those of the part") {
  const TempDir dir;
  DatasetSettings part = images(dir);
  part.first = 2, part.count = 3;
  compare(*make_dataset(part, 0));
  compare(*make_dataset(
      {.kind = "synthetic", .name = "normal_regression", .samples = 9, .shape = {3}, .first = 4, .target_width = 4},
      0));
}

TEST_CASE("stored rows: images that are decoded when they are read lie nowhere") {
  const TempDir dir;
  write_png(dir.path() + "/a.png", 1, 3, 4, std::vector<uint8_t>(12, 7));
  const ImageFolder folder(dir.path(), image_names(dir.path()), Shape{1, 3, 4}, Normalization({}));
  CHECK_FALSE(folder.stored().has_value());
}

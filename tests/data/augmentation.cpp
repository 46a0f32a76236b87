// Augmentation: pictures that are windows of the padded image, possibly mirrored; all of them, equally often; a
// function of (seed, epoch, row) and of nothing else.
#include "data/augmentation.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <utility>

#include "data/files.h"
#include "support/allocations.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const Shape kImage{2, 3, 4};
constexpr int64_t kSize = 24;

// Image `row` of a data set whose numbers all differ, and are never the padding's.
std::vector<float> image(int64_t row) {
  std::vector<float> values(kSize);
  std::iota(values.begin(), values.end(), static_cast<float>(1 + row * kSize));
  return values;
}

std::vector<float> augmented(Augmentation& augmentation, const std::vector<int64_t>& rows) {
  std::vector<float> x;
  for (int64_t row : rows) {
    const std::vector<float> one = image(row);
    x.insert(x.end(), one.begin(), one.end());
  }
  augmentation.apply({.x = x.data(), .count = static_cast<int64_t>(rows.size()), .rows = rows});
  return x;
}

struct Picture {
  int64_t down = 0, right = 0;
  bool mirrored = false;
  auto operator<=>(const Picture&) const = default;
};

// Element by element, as the definition says.
std::vector<float> oracle(const std::vector<float>& from, const Picture& picture, float fill) {
  std::vector<float> to(kSize);
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t x = 0; x < 4; ++x) {
        const int64_t from_y = y + picture.down, from_x = (picture.mirrored ? 3 - x : x) + picture.right;
        const bool inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 4;
        to[static_cast<size_t>((c * 3 + y) * 4 + x)] =
            inside ? from[static_cast<size_t>((c * 3 + from_y) * 4 + from_x)] : fill;
      }
  return to;
}

}  // namespace

TEST_CASE("augmentation draws every window and its mirror image equally often") {
  Augmentation augmentation({.crop_padding = 2, .flip = 0.5, .fill = -7, .seed = 3}, kImage);
  std::map<Picture, int> seen;
  constexpr int kEpochs = 10000;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    augmentation.set_epoch(epoch);
    const std::vector<float> x = augmented(augmentation, {5});
    int matches = 0;
    for (int64_t down = -2; down <= 2; ++down)
      for (int64_t right = -2; right <= 2; ++right)
        for (bool mirrored : {false, true})
          if (const Picture picture{down, right, mirrored}; oracle(image(5), picture, -7) == x)
            ++seen[picture], ++matches;
    REQUIRE(matches == 1);
  }
  CHECK(seen.size() == 50);
  for (const auto& [picture, count] : seen) CHECK_MESSAGE(std::abs(count - 200) < 70, picture.down, picture.right);
}

TEST_CASE("augmentation of picked rows draws what it makes of images") {
  const AugmentationSettings settings{.crop_padding = 2, .flip = 0.5, .fill = -7, .seed = 3};
  Augmentation augmentation(settings, kImage);
  const ImageFormat format = augmentation.format();
  CHECK(format.channels == 2);
  CHECK(format.fill == -7);
  std::vector<int64_t> rows(200);
  std::iota(rows.begin(), rows.end(), 0);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    augmentation.set_epoch(epoch);
    std::vector<PickedRow> picked(rows.size());
    augmentation.apply({.picked = picked.data(), .count = 200, .rows = rows});
    const std::vector<float> images = augmented(augmentation, rows);
    for (int64_t row = 0; row < 200; ++row) {
      const std::vector<float> whole = image(row);
      std::vector<float> drawn;
      for (int64_t i = 0; i < kSize; ++i) {
        const int64_t from = drawn_from(format, picked[static_cast<size_t>(row)].draw, i % 12 / 4, i % 4);
        drawn.push_back(from < 0 ? format.fill : whole[static_cast<size_t>(i / 12 * 12 + from)]);
      }
      CHECK(std::equal(drawn.begin(), drawn.end(), images.begin() + row * kSize));
    }
  }
}

TEST_CASE("augmentation of a sample depends on seed and epoch and row alone") {
  const AugmentationSettings settings{.crop_padding = 1, .flip = 0.5, .seed = 3};
  Augmentation one(settings, kImage), other(settings, kImage);
  one.set_epoch(4), other.set_epoch(4);
  std::vector<int64_t> rows(100), backwards;
  std::iota(rows.begin(), rows.end(), 0);
  backwards.assign(rows.rbegin(), rows.rend());
  const std::vector<float> all = augmented(one, rows), reversed = augmented(other, backwards);
  for (size_t i = 0; i < 100; ++i)
    CHECK(std::equal(all.begin() + static_cast<int64_t>(i) * kSize, all.begin() + static_cast<int64_t>(i + 1) * kSize,
                     reversed.begin() + static_cast<int64_t>(99 - i) * kSize));
  other.set_epoch(5);
  CHECK(augmented(other, rows) != all);
  for (const AugmentationSettings& changed :
       {AugmentationSettings{.crop_padding = 1, .flip = 0.5, .seed = 4},
        AugmentationSettings{.crop_padding = 1, .flip = 0.5, .seed = 3, .owner = 1}}) {
    Augmentation third(changed, kImage);
    third.set_epoch(4);
    CHECK(augmented(third, rows) != all);
  }
}

TEST_CASE("augmentation: a probability of 0 or 1 is certain and nothing is allocated") {
  Augmentation always({.flip = 1}, kImage);
  std::vector<int64_t> rows(100);
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<float> x = augmented(always, rows);
  for (size_t i = 0; i < 100; ++i)
    CHECK(std::vector<float>(x.begin() + static_cast<int64_t>(i) * kSize,
                             x.begin() + static_cast<int64_t>(i + 1) * kSize) ==
          oracle(image(static_cast<int64_t>(i)), {.mirrored = true}, 0));
  std::vector<float> batch = image(0);
  const std::vector<int64_t> row{0};
  Augmentation both({.crop_padding = 1, .flip = 0.5}, kImage);
  const int64_t before = allocations();
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    both.set_epoch(epoch);
    both.apply({.x = batch.data(), .count = 1, .rows = row});
  }
  CHECK(allocations() == before);
}

TEST_CASE("augmentation refuses what is no image or too small") {
  CHECK_EQ(error_of([] { Augmentation({.flip = 1}, Shape{7}); }),
           "data.augmentation: expected images [channels, height, width], found samples of shape [7]");
  CHECK_EQ(error_of([] { Augmentation({.crop_padding = 3}, kImage); }),
           "data.augmentation.crop_padding: expected less than the image's 3 x 4, found 3");
}

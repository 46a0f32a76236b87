// Batches that a GPU makes of a data set that it keeps, beside those that the host assembles.
#pragma once

#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "backend/backend.h"
#include "data/augmentation.h"
#include "data/files.h"
#include "data/rows.h"

namespace lockstep::test {

// 13 images of bytes, [3, 5, 4].
inline DatasetSettings byte_images(const TempDir& dir) {
  return {.kind = "idx",
          .images = dir.write("images", idx({13, 3, 5, 4}, ramp(780))),
          .labels = dir.write("labels", idx({13}, ramp(13))),
          .mean = 0.4914,
          .std = 0.2023};
}

constexpr AugmentationSettings kCrops{.crop_padding = 2, .flip = 0.5, .fill = -2.4F, .seed = 9};

inline bool same_bytes(const Memory& memory, const void* there, const void* host, size_t bytes) {
  std::vector<std::byte> copy(bytes);
  memory.download(copy.data(), there, bytes);
  return bytes == 0 || std::memcmp(copy.data(), host, bytes) == 0;
}

// Twenty batches of 1 to 7 rows drawn with replacement, over four epochs: samples and targets to the bit.
inline bool same_batches(Backend& gpu, const Dataset& dataset, const AugmentationSettings& augment, uint32_t seed) {
  constexpr int64_t most = 7;
  std::optional<Augmentation> augmentation;
  if (augment.any()) augmentation.emplace(augment, dataset.sample_shape());
  const ImageFormat image = augmentation ? augmentation->format() : ImageFormat{};
  const auto feed = gpu.make_keeping_feed(dataset.stored().value(), image, most);
  const Buffer memory = feed->allocate(most * sizeof(PickedRow));
  const std::span<PickedRow> picked = memory.as<PickedRow>();
  std::mt19937 random(seed);
  bool same = true;
  for (int batch = 0; batch < 20; ++batch) {
    if (augmentation) augmentation->set_epoch(batch / 5);
    std::vector<int64_t> rows(1 + random() % most);
    for (int64_t& row : rows) row = static_cast<int64_t>(random() % static_cast<uint64_t>(dataset.size()));
    const auto count = static_cast<int64_t>(rows.size());
    Rows expected = read_rows(dataset, rows);
    if (augmentation) augmentation->apply({.x = expected.x.data(), .count = count, .rows = rows});

    feed->release();
    for (size_t i = 0; i < rows.size(); ++i) picked[i] = {.row = rows[i], .draw = {}};
    if (augmentation) augmentation->apply({.picked = picked.data(), .count = count, .rows = rows});
    const Feed::Batch made = feed->gather(picked.first(rows.size()));
    same = same && same_bytes(gpu.memory(), made.x, expected.x.data(), expected.x.size() * sizeof(float)) &&
           same_bytes(gpu.memory(), made.targets, expected.labels.data(), expected.labels.size() * sizeof(int64_t)) &&
           same_bytes(gpu.memory(), made.targets, expected.targets.data(), expected.targets.size() * sizeof(float));
  }
  return same;
}

}  // namespace lockstep::test

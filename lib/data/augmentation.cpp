#include "data/augmentation.h"

#include <algorithm>

#include "core/counter_rng.h"
#include "core/error.h"

namespace lockstep {
namespace {

enum Draw : uint64_t { kDown, kRight, kFlip };

// 0 .. count - 1, the high bits of a product: count is small, so each is as likely as the others to 2^-32.
int64_t draw_below(uint64_t word, int64_t count) {
  return static_cast<int64_t>(((word >> 32) * static_cast<uint64_t>(count)) >> 32);
}

double draw_unit(uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }  // in [0, 1)

}  // namespace

Augmentation::Augmentation(const AugmentationSettings& settings, const Shape& sample_shape) : settings_(settings) {
  if (sample_shape.rank() != 3)
    throw_error("data.augmentation: expected images [channels, height, width], found samples of shape {}",
                sample_shape.str());
  channels_ = sample_shape[0], height_ = sample_shape[1], width_ = sample_shape[2];
  if (settings.crop_padding >= std::min(height_, width_))
    throw_error("data.augmentation.crop_padding: expected less than the image's {} x {}, found {}", height_, width_,
                settings.crop_padding);
  plane_.resize(static_cast<size_t>(height_ * width_));
}

void Augmentation::apply(const Batch& batch) {
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const ImageDraw drawn = draw(batch.rows[i]);
    if (batch.picked != nullptr) {
      batch.picked[i].draw = drawn;
      continue;
    }
    float* image = batch.x + static_cast<int64_t>(i) * channels_ * height_ * width_;
    shift(image, drawn.down, drawn.right);
    if (drawn.mirrored) mirror(image);
  }
}

ImageDraw Augmentation::draw(int64_t row) const {
  const uint64_t key = mix_key(settings_.seed, static_cast<uint64_t>(settings_.owner), static_cast<uint64_t>(epoch_),
                               static_cast<uint64_t>(row));
  const int64_t padding = settings_.crop_padding;
  const auto offset = [&](Draw which) {
    return static_cast<int32_t>(draw_below(counter_word(key, which), 2 * padding + 1) - padding);
  };
  return {.down = padding > 0 ? offset(kDown) : 0,
          .right = padding > 0 ? offset(kRight) : 0,
          .mirrored = settings_.flip > 0 && draw_unit(counter_word(key, kFlip)) < settings_.flip};
}

// The window of the padded image that lies `down` and `right` of the image's own place.
void Augmentation::shift(float* image, int64_t down, int64_t right) {
  if (down == 0 && right == 0) return;
  const int64_t left = std::max<int64_t>(0, -right), kept = width_ - std::abs(right);
  for (int64_t c = 0; c < channels_; ++c, image += height_ * width_) {
    std::copy_n(image, height_ * width_, plane_.begin());
    std::fill_n(image, height_ * width_, settings_.fill);
    for (int64_t y = std::max<int64_t>(0, -down); y < height_ - std::max<int64_t>(0, down); ++y)
      std::copy_n(plane_.begin() + (y + down) * width_ + std::max<int64_t>(0, right), kept, image + y * width_ + left);
  }
}

void Augmentation::mirror(float* image) const {
  for (int64_t line = 0; line < channels_ * height_; ++line, image += width_) std::reverse(image, image + width_);
}

}  // namespace lockstep

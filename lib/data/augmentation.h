// Random pictures of training images, drawn anew every epoch. What is drawn for a sample is a function of the seed, the
// epoch and the sample's row, so it depends on no rank count, batch, thread or resume.
#pragma once

#include <cstdint>
#include <vector>

#include "core/picked_row.h"
#include "data/dataset.h"

namespace lockstep {

struct AugmentationSettings {
  int64_t crop_padding = 0;  // pixels around the image, of which a window of its own size is cut (RandomCrop's padding)
  double flip = 0;           // probability of a left-right mirror image (RandomHorizontalFlip)
  float fill = 0;            // of the padding, as batches hold it: a black pixel, normalised
  uint64_t seed = 0;
  // Data that each rank holds alone: the rank, as row 0 is another sample on every one of them. Else 0.
  int64_t owner = 0;
  bool any() const { return crop_padding > 0 || flip > 0; }
};

class Augmentation {
 public:
  // Throws Error unless samples are images [C, H, W], with padding below H and W.
  Augmentation(const AugmentationSettings& settings, const Shape& sample_shape);

  void set_epoch(int64_t epoch) { epoch_ = epoch; }
  // Changes the samples of a batch, whose rows are set, or of picked rows what is drawn of them. Allocates nothing.
  void apply(const Batch& batch);
  // What is drawn of a row in this epoch.
  ImageDraw draw(int64_t row) const;
  ImageFormat format() const { return {channels_, height_, width_, settings_.fill}; }

 private:
  void shift(float* image, int64_t down, int64_t right);
  void mirror(float* image) const;

  AugmentationSettings settings_;
  int64_t channels_, height_, width_;
  int64_t epoch_ = 0;
  std::vector<float> plane_;  // one channel of one image
};

}  // namespace lockstep

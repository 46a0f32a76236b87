// A row of a data set as a batch wants it: which one, and how its image is drawn. Whoever assembles batches gets these:
// the host where the data lies in its memory, a GPU that keeps the data set. constexpr, so that kernels may call it.
#pragma once

#include <cstdint>

namespace lockstep {

// A window of the image's own size that lies `down` and `right` of its place, then mirrored left to right or not.
struct ImageDraw {
  int32_t down = 0, right = 0;
  bool mirrored = false;
};

struct PickedRow {
  int64_t row = 0;
  ImageDraw draw;
};

// Images [channels, height, width]; fill: what lies around them.
struct ImageFormat {
  int64_t channels = 0, height = 0, width = 0;  // no channels: rows are no images, and drawn as they are
  float fill = 0;
};

// Where pixel (y, x) of what is drawn lies in its channel of the image; -1: outside.
constexpr int64_t drawn_from(const ImageFormat& image, const ImageDraw& draw, int64_t y, int64_t x) {
  const int64_t from_y = y + draw.down, from_x = (draw.mirrored ? image.width - 1 - x : x) + draw.right;
  const bool inside = from_y >= 0 && from_y < image.height && from_x >= 0 && from_x < image.width;
  return inside ? from_y * image.width + from_x : -1;
}

}  // namespace lockstep

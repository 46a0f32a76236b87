// Where the numbers of a channel lie in x[images][blocks][spatial][block], for kernels that sum over everything but the
// channels or walk over all elements knowing their channel. Channels last is one block; [N, C] is N such pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/reduction_shape.h"
#include "core/tensor.h"

namespace lockstep::cuda {

struct ChannelGrid {
  size_t images = 0, blocks = 0, spatial = 1, block = 1;

  constexpr size_t channels() const { return blocks * block; }
  constexpr size_t values() const { return images * spatial; }  // of one channel
  constexpr ColumnShape columns() const { return column_shape(values(), channels(), block == 1 && spatial > 1); }
  // Value r of channel c. Divisions are of 32 bits, as those of 64 take a GPU longer than reading the number.
  constexpr size_t at(size_t r, size_t c) const {
    if (blocks == 1) return r * block + c;
    const size_t image = static_cast<uint32_t>(r) / static_cast<uint32_t>(spatial), pixel = r - image * spatial;
    const size_t b = block == 1 ? c : static_cast<uint32_t>(c) / static_cast<uint32_t>(block);
    return ((image * blocks + b) * spatial + pixel) * block + (c - b * block);
  }

  // All elements as a matrix of adjacent columns, a row being a plane, or a pixel where channels are last.
  constexpr size_t matrix_rows() const { return images * blocks; }
  constexpr size_t matrix_columns() const { return spatial * block; }
  constexpr size_t channel_of(size_t row, size_t column) const {
    const size_t lane = spatial == 1 ? column : static_cast<uint32_t>(column) % static_cast<uint32_t>(block);
    return blocks == 1 ? lane : static_cast<uint32_t>(row) % static_cast<uint32_t>(blocks) * block + lane;
  }
};

// input: [N, C, ...] with any channel block. Throws Error for one without channels, and beyond 32 bits.
inline ChannelGrid channel_grid(const TensorDesc& input) {
  const Shape& shape = input.shape;
  if (shape.rank() < 2) refuse("normalisation: expected an input [N, C, ...], found " + shape.str());
  ChannelGrid grid;
  grid.images = static_cast<size_t>(shape[0]);
  for (int axis = 2; axis < shape.rank(); ++axis) grid.spatial *= static_cast<size_t>(shape[axis]);
  const auto channels = static_cast<size_t>(shape[1]);
  grid.block = grid.spatial == 1 && input.channel_block == 1 ? channels : static_cast<size_t>(input.channel_block);
  grid.blocks = grid.block == 0 ? 0 : channels / grid.block;
  if (grid.channels() != channels)
    refuse("blocks of " + std::to_string(input.channel_block) + " don't divide the channels of " + shape.str());
  if (grid.blocks == 1) {
    grid.images *= grid.spatial;
    grid.spatial = 1;
  }
  constexpr size_t most = std::numeric_limits<uint32_t>::max();
  if (grid.values() > most || grid.matrix_rows() > most || grid.matrix_columns() > most)
    refuse("an input " + shape.str() + " is too large");
  return grid;
}

}  // namespace lockstep::cuda

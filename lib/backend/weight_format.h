// How a plan stores a parameter. The canonical PyTorch layout exists at initialisation, in checkpoints and in printed
// values only; during training a slice of the parameter arena (and its gradient) keeps the layout its plan computes
// with.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace lockstep {

class WeightFormat {
 public:
  virtual ~WeightFormat() = default;
  // Stored size in floats, >= the canonical count. Padding stays zero: kernels write zeros to the gradient's padding.
  virtual size_t stored_count() const = 0;
  virtual void store(std::span<const float> canonical, std::span<float> stored) const = 0;
  virtual void load(std::span<const float> stored, std::span<float> canonical) const = 0;
};
using WeightFormatPtr = std::shared_ptr<const WeightFormat>;  // nullptr: canonical, row-major, no padding

}  // namespace lockstep

// Convolution weights as cuDNN reads them with channels last: [out][kh][kw][in] instead of PyTorch's [out][in][kh][kw].
#pragma once

#include "backend/weight_format.h"
#include "core/shape.h"

namespace lockstep::cuda {

class FilterFormat final : public WeightFormat {
 public:
  explicit FilterFormat(const Shape& canonical) : shape_(canonical) {}  // [out, in, kh, kw]
  size_t stored_count() const override { return static_cast<size_t>(shape_.numel()); }
  void store(std::span<const float> canonical, std::span<float> stored) const override;
  void load(std::span<const float> stored, std::span<float> canonical) const override;
  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
};

// Null where the two layouts are the same: kernels of one pixel, and one input channel (of a group).
WeightFormatPtr filter_format(const Shape& canonical);

}  // namespace lockstep::cuda

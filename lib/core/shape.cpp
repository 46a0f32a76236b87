#include "core/shape.h"

#include "core/error.h"

namespace lockstep {

std::string_view name(DType type) {
  switch (type) {
    case DType::f32: return "fp32";
    case DType::bf16: return "bf16";
    case DType::f16: return "fp16";
    case DType::i64: break;
  }
  return "int64";
}

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) throw_error("a shape has at most {} dimensions, got {}", kMaxRank, dims.size());
  for (int64_t dim : dims) {
    if (dim < 0) throw_error("a dimension cannot be negative: {}", dim);
    dims_[static_cast<size_t>(rank_++)] = dim;
  }
}

int64_t Shape::numel() const {
  int64_t product = 1;
  for (int64_t dim : dims()) {
    if (__builtin_mul_overflow(product, dim, &product)) throw_error("shape {} has more than 2^63 elements", str());
  }
  return product;
}

Shape Shape::with_front(int64_t dim) const {
  std::array<int64_t, kMaxRank + 1> all{};
  all[0] = dim;
  for (int axis = 0; axis < rank_; ++axis) all[static_cast<size_t>(axis) + 1] = dims_[static_cast<size_t>(axis)];
  return Shape(std::span<const int64_t>(all.data(), static_cast<size_t>(rank_) + 1));
}

Shape Shape::without_front() const { return Shape(dims().subspan(1)); }

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(dims(), ", ")); }

}  // namespace lockstep

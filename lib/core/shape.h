// Shapes and element types. A shape has at most kMaxRank dimensions, outermost first, and owns no memory on the heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

enum class DType : uint8_t { f32, bf16, f16, i64 };
constexpr size_t size_of(DType type) { return type == DType::f32 ? 4 : type == DType::i64 ? 8 : 2; }
std::string_view name(DType type);  // as in a config: "fp32", "bf16", "fp16"

class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);  // throws Error: more than kMaxRank dimensions, a negative one

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t numel() const;  // 1 for rank 0; throws Error on overflow of int64
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  Shape with_front(int64_t dim) const;  // [dim, *this]
  Shape without_front() const;          // drops dimension 0
  std::string str() const;              // "[64, 1, 28, 28]"
  bool operator==(const Shape& other) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace lockstep

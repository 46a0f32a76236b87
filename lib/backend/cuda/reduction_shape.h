// The order in which kernels add up, the same on every GPU: thread t of block b takes the elements t + threads * b, and
// every threads * blocks after that, in ascending order; then the upper half of a block's threads is added to the lower
// half until one is left; then the blocks' results are added by one block in the same way.
//
// The columns of a matrix are summed likewise: `threads` threads of a block share a column and take its rows in turn,
// each in ascending order, as many blocks share it as there are slices, and halves of threads are added up; the slices'
// results are rows of a second matrix. The shape follows from the matrix alone.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

constexpr int reduction_threads = 256;
constexpr int reduction_blocks = 256;

// Combines the blocks' results as Reduction combines elements.
template <class Reduction, class Value>
struct PartsOf {
  const Value* parts;
  static constexpr Value identity() { return Reduction::identity(); }
  static constexpr Value combine(Value a, Value b) { return Reduction::combine(a, b); }
  constexpr Value operator()(size_t i) const { return parts[i]; }
};

struct ColumnShape {
  size_t rows, columns;
  bool rows_adjacent;  // in memory: neighbouring threads take neighbouring rows, otherwise neighbouring columns
  unsigned lanes;      // columns of a block, a power of two
  unsigned slices;     // blocks of a column

  constexpr unsigned threads() const { return reduction_threads / lanes; }  // of a block, for one column
  constexpr unsigned row_of(unsigned thread) const { return rows_adjacent ? thread % threads() : thread / lanes; }
  constexpr unsigned lane_of(unsigned thread) const { return rows_adjacent ? thread / threads() : thread % lanes; }
  constexpr unsigned row_step() const { return rows_adjacent ? 1 : lanes; }  // from a thread to that of the next row
  constexpr size_t column_blocks() const { return (columns + lanes - 1) / lanes; }
  constexpr size_t parts() const { return slices == 1 ? 0 : slices * columns; }  // values between the two passes
};

// The smallest power of two that is not below n, at most `most`.
constexpr unsigned power_of_two(size_t n, unsigned most) {
  unsigned power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

// Enough blocks to fill a large GPU, as long as a thread has several rows to add.
constexpr ColumnShape column_shape(size_t rows, size_t columns, bool rows_adjacent) {
  constexpr size_t wanted_blocks = 1024, rows_of_thread = 8, most_slices = 256;
  const unsigned lanes =
      rows_adjacent ? reduction_threads / power_of_two(rows, reduction_threads) : power_of_two(columns, 32);
  ColumnShape shape{rows, columns, rows_adjacent, lanes, 1};
  const size_t of_rows = rows / (shape.threads() * rows_of_thread);
  const size_t of_grid = columns == 0 ? 0 : wanted_blocks / shape.column_blocks();
  size_t slices = of_rows < of_grid ? of_rows : of_grid;
  if (slices > most_slices) slices = most_slices;
  shape.slices = slices < 1 ? 1 : static_cast<unsigned>(slices);
  return shape;
}

// The second pass.
constexpr ColumnShape slices_shape(const ColumnShape& first) {
  ColumnShape shape = column_shape(first.slices, first.columns, false);
  shape.slices = 1;
  return shape;
}

template <class Value>
struct StoreSlice {
  Value* parts;
  size_t columns;
  constexpr void operator()(size_t slice, size_t column, const Value& value) const {
    parts[slice * columns + column] = value;
  }
};

template <class Finish>
struct FinishColumn {
  Finish finish;
  template <class Value>
  constexpr void operator()(size_t, size_t column, const Value& value) const {
    finish(column, value);
  }
};

template <class Reduction, class Value>
struct SlicesOf {
  const Value* parts;
  size_t columns;
  static constexpr Value identity() { return Reduction::identity(); }
  static constexpr Value combine(const Value& a, const Value& b) { return Reduction::combine(a, b); }
  constexpr Value operator()(size_t slice, size_t column) const { return parts[slice * columns + column]; }
};

}  // namespace lockstep::cuda

// Samples and targets of a data set as they lie in somebody's memory, row after row: for whoever wants a copy of all of
// them elsewhere. Holds pointers only, of host or of device memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

struct StoredRows {
  int64_t count = 0;
  int64_t sample_numel = 0;  // numbers of a sample
  // One of the two, [count, sample_numel]. A byte stands for the number table[byte].
  const float* floats = nullptr;
  const uint8_t* bytes = nullptr;
  const float* table = nullptr;  // [256]
  // One of the two.
  const int64_t* labels = nullptr;  // [count]
  const float* values = nullptr;    // [count, value_width]
  int64_t value_width = 1;

  static constexpr size_t table_bytes = 256 * sizeof(float);
  size_t sample_bytes() const {
    return static_cast<size_t>(sample_numel) * (bytes != nullptr ? sizeof(uint8_t) : sizeof(float));
  }
  size_t target_bytes() const {  // of a row
    return labels != nullptr ? sizeof(int64_t) : static_cast<size_t>(value_width) * sizeof(float);
  }
  size_t all_bytes() const {
    return static_cast<size_t>(count) * (sample_bytes() + target_bytes()) + (bytes != nullptr ? table_bytes : 0);
  }
};

}  // namespace lockstep

// NumPy's .npy files (format 1.0, 2.0, 3.0): little-endian f4, f8, i4, i8 or u1, C order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/settings.h"

namespace lockstep {

enum class NpyType { f4, f8, i4, i8, u1 };

struct NpyHeader {
  NpyType type = NpyType::f4;
  bool fortran_order = false;
  std::vector<int64_t> shape;  // outermost first; empty for a scalar
};

// The Python dict after the magic: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }. `source` is
// the file for the message. Throws Error for anything else than these three keys, and for other element types.
NpyHeader parse_npy_header(std::string_view text, const std::string& source);

struct NpyArray {
  NpyHeader header;
  std::vector<uint8_t> data;  // elements as they lie in the file
  template <class T>
  std::vector<T> converted() const;  // float or int64_t
};

// Throws Error naming file, expected and found: not an .npy file, Fortran order, another type, too few or too many
// bytes.
NpyArray read_npy(const std::string& path);

// settings.x [n, ...] and settings.y: integers [n] or [n, 1] are class labels, floats [n, ...] are values. u1 samples
// are scaled to [0, 1].
std::unique_ptr<Dataset> make_npy(const DatasetSettings& settings);

}  // namespace lockstep

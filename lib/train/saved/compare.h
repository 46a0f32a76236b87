// Two sets of tensors side by side: checkpoints, run directories (their newest checkpoint) or safetensors files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/checkpoint/tensor_file.h"

namespace lockstep {

// Equal within absolute + relative * |the second value|, as numpy.allclose; 0 and 0: the same values. NaN equals NaN.
struct Tolerance {
  double absolute = 0, relative = 0;
};

struct TensorDifference {
  enum class Kind { equal, different, only_first, only_second, shapes };
  std::string name;  // "model: conv1.weight"; of a single file without the part in front
  Kind kind = Kind::equal;
  double absolute = 0;  // largest |a - b|
  double relative = 0;  // largest |a - b| / max(|a|, |b|)
  int64_t values = 0;   // of the tensor
  int64_t beyond = 0;   // of them outside the tolerance
  std::string shapes;   // "[2, 3] and [3, 2]"
};

TensorDifference compare_tensor(const std::string& name, const TensorFile& a, const TensorFile& b,
                                const Tolerance& tolerance);

struct Comparison {
  std::string first, second;              // what was compared: the checkpoints' or the files' paths
  std::vector<TensorDifference> tensors;  // by name
  bool equal() const;
};

// A checkpoint beside a single file stands for its model.safetensors. Error: what cannot be read.
Comparison compare_saved(const std::string& a, const std::string& b, const Tolerance& tolerance);

// A line for every tensor that differs (every one with `all`), the largest difference first, and a summary.
std::string comparison_text(const Comparison& comparison, bool all);

}  // namespace lockstep

#include "backend/metrics_ops.h"

#include "core/error.h"

namespace lockstep {

int64_t count_correct(const TensorView& output, const TensorView& labels) {
  const Shape& shape = output.desc.shape;
  if (shape.rank() < 1 || output.desc.dtype != DType::f32 || labels.desc.dtype != DType::i64 ||
      labels.numel() != shape[0])
    throw_error("accuracy: expected one label per row of {}, found labels of shape {}", shape.str(),
                labels.desc.shape.str());
  if (shape[0] == 0) return 0;
  const int64_t classes = shape.numel() / shape[0];
  int64_t correct = 0;
  for (int64_t row = 0; row < shape[0]; ++row) {
    const float* x = output.f32() + row * classes;
    int64_t best = 0;
    bool nan = false;
    for (int64_t c = 0; c < classes; ++c) {
      if (x[c] > x[best]) best = c;
      nan = nan || x[c] != x[c];
    }
    correct += !nan && best == labels.i64()[row] ? 1 : 0;
  }
  return correct;
}

}  // namespace lockstep

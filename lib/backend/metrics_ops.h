// Metrics of one batch as counts, to be summed over batches and ranks.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace lockstep {

// Rows of output (f32 [n, C], canonical) whose first maximum is at labels[row] (i64 [n]). A row with a NaN is never
// correct.
int64_t count_correct(const TensorView& output, const TensorView& labels);

}  // namespace lockstep

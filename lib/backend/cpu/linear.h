// The two ways to compute a fully connected layer on a CPU: oneDNN for large ones, own kernels for tiny ones, where a
// library call costs more than the arithmetic.
#pragma once

#include <memory>

#include "backend/plans.h"
#include "backend/specs.h"

namespace lockstep {

// Throws Error for a specification that can't be planned. Returns the features of one row (K).
int64_t check_linear(const LinearSpec& spec);

std::unique_ptr<LinearPlan> make_onednn_linear(const LinearSpec& spec);

}  // namespace lockstep

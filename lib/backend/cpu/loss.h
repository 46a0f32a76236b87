// What the CPU losses share: checks of their two tensors. Cross-entropy has a file of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/loss_ops.h"

namespace lockstep {

// Rows of `output`, an f32 [n, classes] in canonical layout with n <= batch. Throws Error otherwise.
int64_t check_loss_output(std::string_view loss, const TensorView& output, int64_t batch, int64_t classes);
// Throws Error unless target is f32 with as many elements as output.
void check_dense_target(std::string_view loss, const TensorView& output, const TensorView& target);

std::unique_ptr<LossPlan> make_cpu_cross_entropy(const LossSpec& spec, int64_t batch, int64_t classes);

}  // namespace lockstep

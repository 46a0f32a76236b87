// What the losses of every backend check before they compute.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/loss_ops.h"

namespace lockstep {

std::string_view loss_name(LossSpec::Kind kind);  // "mse"
// Throws Error for what no backend can plan.
void check_loss_spec(const LossSpec& spec, int64_t batch, int64_t classes);
// Rows of `output`, an f32 [n, classes] in canonical layout with n <= batch. Throws Error otherwise.
int64_t check_loss_output(std::string_view loss, const TensorView& output, int64_t batch, int64_t classes);
// Throws Error unless target, class indices of the cross entropy, has one for each of `rows` rows.
void check_label_target(const TensorView& target, int64_t rows);
// Throws Error unless target is f32 with as many elements as output.
void check_dense_target(std::string_view loss, const TensorView& output, const TensorView& target);

}  // namespace lockstep

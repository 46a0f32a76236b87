#include "backend/loss_checks.h"

#include <iterator>

#include "core/error.h"

namespace lockstep {

std::string_view loss_name(LossSpec::Kind kind) {
  switch (kind) {
    case LossSpec::Kind::cross_entropy: return "cross_entropy";
    case LossSpec::Kind::mse: return "mse";
    case LossSpec::Kind::l1: return "l1";
    case LossSpec::Kind::smooth_l1: return "smooth_l1";
    case LossSpec::Kind::bce_with_logits: return "bce_with_logits";
  }
  throw_error("loss: unknown kind {}", static_cast<int>(kind));
}

void check_loss_spec(const LossSpec& spec, int64_t batch, int64_t classes) {
  if (batch < 0 || classes < 1) throw_error("loss: cannot compare a batch of {} rows of {} values", batch, classes);
  const bool fits = spec.class_weights.empty() || std::ssize(spec.class_weights) == classes;
  switch (spec.kind) {
    case LossSpec::Kind::cross_entropy:
      if (!(spec.label_smoothing >= 0 && spec.label_smoothing <= 1))
        throw_error("cross_entropy: label_smoothing must be from 0 to 1, found {}", spec.label_smoothing);
      if (!fits) throw_error("cross_entropy: expected {} class weights, found {}", classes, spec.class_weights.size());
      break;
    case LossSpec::Kind::smooth_l1:
      if (!(spec.beta >= 0)) throw_error("smooth_l1: beta must not be negative, found {}", spec.beta);
      break;
    case LossSpec::Kind::bce_with_logits:
      if (!fits)
        throw_error("bce_with_logits: expected {} positive weights, found {}", classes, spec.class_weights.size());
      break;
    case LossSpec::Kind::mse:
    case LossSpec::Kind::l1: break;
  }
}

int64_t check_loss_output(std::string_view loss, const TensorView& output, int64_t batch, int64_t classes) {
  const TensorDesc& desc = output.desc;
  if (desc.dtype != DType::f32 || desc.channel_block != 1 || desc.shape.rank() < 1)
    throw_error("{}: expected an f32 output [n, {}], found {}", loss, classes, desc.shape.str());
  const int64_t rows = desc.shape[0];
  if (rows > batch || desc.shape.numel() != rows * classes)
    throw_error("{}: expected an output of at most {} rows of {} values, found {}", loss, batch, classes,
                desc.shape.str());
  return rows;
}

void check_label_target(const TensorView& target, int64_t rows) {
  if (target.numel() != rows)
    throw_error("cross_entropy: expected {} class indices, found {}", rows, target.desc.shape.str());
}

void check_dense_target(std::string_view loss, const TensorView& output, const TensorView& target) {
  if (target.desc.dtype != DType::f32 || target.numel() != output.numel())
    throw_error("{}: expected f32 targets of shape {}, found {}{}", loss, output.desc.shape.str(),
                target.desc.shape.str(), target.desc.dtype == DType::f32 ? "" : " integers");
}

}  // namespace lockstep

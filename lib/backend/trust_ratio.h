// The layer-wise trust ratios of large-batch training: how long a parameter's step may be for the parameter's own norm.
// Norms are 2-norms over one parameter tensor. Where one is zero there is nothing to compare and the ratio is 1: a
// parameter that starts at zero can move, a zero gradient gives a zero step. For the host and for kernels.
#pragma once

namespace lockstep {

// LARS (You, Gitman, Ginsburg 2017, arXiv:1708.03888, equation 6), with the learning rate outside the momentum as in
// PyTorch's SGD: g' = ratio (g + decay p), then SGD's momentum and p -= lr buffer, where
//   ratio = coefficient |p| / (|g| + decay |p| + eps).
constexpr double lars_trust_ratio(double coefficient, double parameter_norm, double gradient_norm, double weight_decay,
                                  double eps) {
  if (parameter_norm == 0 || gradient_norm == 0) return 1;
  return coefficient * parameter_norm / (gradient_norm + weight_decay * parameter_norm + eps);
}

// LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2): u = m' / (sqrt(v') + eps) + decay p with Adam's
// bias-corrected moments, p -= lr ratio u, where ratio = |p| / |u|.
constexpr double lamb_trust_ratio(double parameter_norm, double update_norm) {
  if (parameter_norm == 0 || update_norm == 0) return 1;
  return parameter_norm / update_norm;
}

}  // namespace lockstep

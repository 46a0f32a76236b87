#include "optim/trust_ratio.h"

namespace lockstep {

double lars_trust_ratio(double coefficient, double parameter_norm, double gradient_norm, double weight_decay,
                        double eps) {
  if (parameter_norm == 0 || gradient_norm == 0) return 1;
  return coefficient * parameter_norm / (gradient_norm + weight_decay * parameter_norm + eps);
}

double lamb_trust_ratio(double parameter_norm, double update_norm) {
  if (parameter_norm == 0 || update_norm == 0) return 1;
  return parameter_norm / update_norm;
}

}  // namespace lockstep

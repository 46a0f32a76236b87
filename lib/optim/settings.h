// Everything a config says about the optimizer, as plain data (the optimizer: section, key for key).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Parameters that match any of `match`: a glob on the name (* and ?), or the words norm | bias. First group wins.
struct ParameterGroupRule {
  std::vector<std::string> match;
  std::optional<double> lr, weight_decay;  // empty: the optimizer's
  bool trainable = true;                   // false: frozen, as requires_grad=False
};

struct OptimizerSettings {
  std::string kind = "sgd";            // sgd | adam | adamw | adadelta | rmsprop | adagrad | lars | lamb
  std::optional<double> lr;            // empty: PyTorch's default for the kind
  std::optional<double> weight_decay;  // empty: 0, adamw 0.01
  double momentum = 0, dampening = 0;
  bool nesterov = false, maximize = false, amsgrad = false, centered = false;
  double beta1 = 0.9, beta2 = 0.999;
  std::optional<double> eps;  // empty: PyTorch's default for the kind
  double rho = 0.9, alpha = 0.99, lr_decay = 0, initial_accumulator_value = 0;
  bool decay_norm_and_bias = true;   // false: no weight decay on norms and biases, unless a group gives one
  double trust_coefficient = 1e-3;   // lars
  bool adapt_norm_and_bias = false;  // lars, lamb: true: trust ratios for norms and biases too
  std::vector<ParameterGroupRule> groups;
  bool momentum_scheduled = false;  // a schedule moves the momentum: its buffer exists even where momentum is 0
};

// Fills lr, weight_decay and eps with the kind's defaults and checks everything as PyTorch does, and more: eps must be
// a normal float (parameter padding is 0 and must not become 0/0), and a key that the kind does not have must keep its
// default. Throws Error naming the key ("optimizer.nesterov: ...").
OptimizerSettings resolve(OptimizerSettings settings);

// lars and lamb: every parameter has a trust ratio of its own (backend/trust_ratio.h), so ranges must not span
// parameters.
bool adapts_by_parameter(const OptimizerSettings& settings);

// "sgd, adam, ..." in a fixed order.
std::vector<std::string> optimizer_kinds();

}  // namespace lockstep

// Which parameters share a learning rate and a weight decay, as ranges of the flat arenas.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameter_store.h"
#include "optim/settings.h"

namespace lockstep {

struct ParameterRange {
  size_t offset = 0, count = 0;  // floats, in the parameter, gradient and state arenas alike
  bool operator==(const ParameterRange&) const = default;
};

struct ParameterGroup {
  std::string name;                    // for messages: "all", "group 1", "group 1 (norm and bias)"
  std::vector<ParameterRange> ranges;  // ascending, disjoint
  double lr = 0, weight_decay = 0;
  bool adapt = true;  // with trust ratios, where the kind has them
};

// The trainable parameters of a laid-out store in groups: the config's own in their order, then the rest; each in two
// where norms and biases are not decayed. Groups without parameters are left out. Neighbours in a group become one
// range (with the zero padding between them), so that a usual model is one kernel call per group; with lars and lamb
// every parameter stays a range, and norms and biases are apart unless adapted too. `is_norm`: by
// ParameterId, whether it belongs to a normalisation layer; empty: none does. `settings` as resolve() gives. Throws
// Error: a pattern that matches nothing, a group whose parameters all belong to earlier groups.
std::vector<ParameterGroup> make_parameter_groups(const ParameterStore& store, const std::vector<bool>& is_norm,
                                                  const OptimizerSettings& settings);

// Whether the first group that a parameter matches says trainable: false. What is asked before the store is laid out:
// frozen parameters have no gradient. `norm`: it belongs to a normalisation layer.
bool is_frozen(const OptimizerSettings& settings, const Parameter& parameter, bool norm);

// One range per trainable parameter, in arena order: what clipping takes its norms over.
std::vector<ParameterRange> parameter_slices(const ParameterStore& store);

// A parameter of rank 0 or 1 named "bias" or "<layer>.bias".
bool is_bias(const Parameter& parameter);

// Whole-string match with * (any run, dots too) and ? (any one character).
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace lockstep

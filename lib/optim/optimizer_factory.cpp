// The optimizers there are: names, PyTorch's defaults, the keys each understands, how to build it.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "optim/names.h"
#include "optim/optimizer_kinds.h"

namespace lockstep {
namespace {

struct Kind {
  std::string name;
  double lr, weight_decay, eps;   // eps 0: has none
  std::vector<std::string> keys;  // besides kind, lr, weight_decay, maximize, groups
  void (*check)(const OptimizerSettings&);
  std::unique_ptr<Optimizer> (*build)(OptimizerInit);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table = {
      {"sgd", 1e-3, 0, 0, {"momentum", "dampening", "nesterov"}, check_sgd, build_sgd},
      {"adam", 1e-3, 0, 1e-8, {"beta1", "beta2", "eps", "amsgrad"}, check_adam, build_adam},
      {"adamw", 1e-3, 1e-2, 1e-8, {"beta1", "beta2", "eps", "amsgrad"}, check_adam, build_adam},
      {"adadelta", 1.0, 0, 1e-6, {"rho", "eps"}, check_adadelta, build_adadelta},
      {"rmsprop", 1e-2, 0, 1e-8, {"alpha", "eps", "momentum", "centered"}, check_rmsprop, build_rmsprop},
      {"adagrad", 1e-2, 0, 1e-10, {"lr_decay", "initial_accumulator_value", "eps"}, check_adagrad, build_adagrad},
      {"lars",
       0.1,
       0,
       1e-8,
       {"momentum", "nesterov", "trust_coefficient", "adapt_norm_and_bias", "eps"},
       check_lars,
       build_lars},
      {"lamb", 1e-3, 1e-2, 1e-6, {"beta1", "beta2", "adapt_norm_and_bias", "eps"}, check_adam, build_lamb},
  };
  return table;
}

const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kinds())
    if (kind.name == name) return kind;
  throw_unknown_name("optimizer.kind", name, optimizer_kinds());
}

// A key that the kind does not have would be ignored in silence: refuse it.
void check_foreign_keys(const OptimizerSettings& s, const Kind& kind) {
  const OptimizerSettings usual;
  const std::pair<const char*, bool> changed[] = {
      {"momentum", s.momentum != usual.momentum},
      {"dampening", s.dampening != usual.dampening},
      {"nesterov", s.nesterov},
      {"amsgrad", s.amsgrad},
      {"centered", s.centered},
      {"beta1", s.beta1 != usual.beta1},
      {"beta2", s.beta2 != usual.beta2},
      {"eps", s.eps.has_value()},
      {"rho", s.rho != usual.rho},
      {"alpha", s.alpha != usual.alpha},
      {"lr_decay", s.lr_decay != usual.lr_decay},
      {"initial_accumulator_value", s.initial_accumulator_value != usual.initial_accumulator_value},
      {"trust_coefficient", s.trust_coefficient != usual.trust_coefficient},
      {"adapt_norm_and_bias", s.adapt_norm_and_bias},
  };
  for (const auto& [key, is_set] : changed)
    if (is_set && std::find(kind.keys.begin(), kind.keys.end(), key) == kind.keys.end())
      throw_error("optimizer.{}: {} has no such setting (it has: {})", key, kind.name, fmt::join(kind.keys, ", "));
}

}  // namespace

void require_fraction(const char* key, double value) {
  if (!(value >= 0 && value < 1)) throw_error("optimizer.{}: expected a number in [0, 1), found {}", key, value);
}

void require_unit(const char* key, double value) {
  if (!(value >= 0 && value <= 1)) throw_error("optimizer.{}: expected a number in [0, 1], found {}", key, value);
}

void require_non_negative(const char* key, double value) {
  if (!(value >= 0 && value <= std::numeric_limits<float>::max()))
    throw_error("optimizer.{}: expected a number from 0, found {}", key, value);
}

std::vector<std::string> optimizer_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

bool adapts_by_parameter(const OptimizerSettings& settings) {
  return settings.kind == "lars" || settings.kind == "lamb";
}

OptimizerSettings resolve(OptimizerSettings settings) {
  const Kind& kind = find_kind(settings.kind);
  if (kind.eps > 0) settings.eps = settings.eps.value_or(kind.eps);
  check_foreign_keys(settings, kind);
  settings.lr = settings.lr.value_or(kind.lr);
  settings.weight_decay = settings.weight_decay.value_or(kind.weight_decay);
  require_non_negative("lr", *settings.lr);
  require_non_negative("weight_decay", *settings.weight_decay);
  for (const ParameterGroupRule& rule : settings.groups) {
    require_non_negative("groups: lr", rule.lr.value_or(0));
    require_non_negative("groups: weight_decay", rule.weight_decay.value_or(0));
    if (!rule.trainable && (rule.lr || rule.weight_decay))
      throw_error("optimizer.groups: lr and weight_decay have no effect in a group with trainable: false");
  }
  if (kind.eps > 0 && !(*settings.eps >= double{FLT_MIN} && *settings.eps <= double{FLT_MAX}))
    throw_error("optimizer.eps: expected a number above {:.3g} (as a float it must not vanish), found {}", FLT_MIN,
                *settings.eps);
  if (!std::isfinite(settings.dampening)) throw_error("optimizer.dampening: expected a finite number");
  const bool takes_momentum = kind.name != "adadelta" && kind.name != "adagrad";
  if (settings.momentum_scheduled && !takes_momentum)
    throw_error("schedule.cycle_momentum: optimizer {} has no momentum to move, set it to false", kind.name);
  kind.check(settings);
  return settings;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, std::vector<ParameterGroup> groups,
                                          size_t arena_size, const OptimizerOps& ops,
                                          const std::function<Buffer(size_t bytes)>& allocate) {
  return find_kind(settings.kind).build({resolve(settings), std::move(groups), arena_size, ops, allocate});
}

}  // namespace lockstep

// The section optimizer and its parameter groups.
#include <fmt/format.h>

#include "train/config_keys.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

using S = OptimizerConfig;

// betas: [b1, b2] fills two members.
Key betas_key() {
  const Rule rule = from_up_to(0, 1).items(2, 2);
  Key result;
  result.name = "betas";
  result.json = json_schema(std::vector<double>{}, rule);
  result.type = "list of 2 numbers";
  result.bounds = rule.describe();
  result.doc = "Decay of the running mean and of the running square.";
  result.read = [rule](const YamlNode& node, const std::string& path, void* object) {
    std::vector<double> betas;
    read_value(node, path, rule, betas);
    static_cast<S*>(object)->beta1 = betas[0];
    static_cast<S*>(object)->beta2 = betas[1];
  };
  result.print = [](const void* object) {
    const S& optimizer = *static_cast<const S*>(object);
    return print_value(std::vector<double>{optimizer.beta1, optimizer.beta2});
  };
  return std::move(result).of({"adam", "adamw", "lamb"}).also({"beta"});
}

std::vector<Key> make_keys() {
  const Rule flag = anything();
  const Rule fraction = from_up_to(0, 1);
  const Rule normal_float = at_least(1.2e-38);  // a smaller one is 0 once it meets a float
  std::vector<Key> keys;
  keys.push_back(key("kind", &S::kind,
                     one_of({"sgd", "adam", "adamw", "adadelta", "rmsprop", "adagrad", "lars", "lamb"}),
                     "The optimizer.")
                     .also({"type", "name"}));
  keys.push_back(key("lr", &S::lr, at_least(0), "Learning rate; null: PyTorch's for the kind.")
                     .by_default("sgd, adam, adamw, lamb 0.001; adadelta 1; rmsprop, adagrad 0.01; lars 0.1")
                     .also({"learning_rate", "eta"}));
  keys.push_back(
      key("weight_decay", &S::weight_decay, at_least(0), "Weight decay: coupled (L2), adamw and lamb: decoupled.")
          .by_default("0; adamw, lamb 0.01")
          .also({"wd", "l2"}));
  keys.push_back(key("momentum", &S::momentum, fraction, "Momentum.").of({"sgd", "rmsprop", "lars"}));
  keys.push_back(
      key("dampening", &S::dampening, between(0, 1), "Weight taken off the new gradient in the momentum.").of({"sgd"}));
  keys.push_back(key("nesterov", &S::nesterov, flag, "Nesterov's momentum; needs momentum > 0 and dampening 0.")
                     .of({"sgd", "lars"}));
  keys.push_back(betas_key());
  keys.push_back(
      key("amsgrad", &S::amsgrad, flag, "Divides by the largest running square so far.").of({"adam", "adamw"}));
  keys.push_back(key("rho", &S::rho, between(0, 1), "Decay of the running squares.").of({"adadelta"}));
  keys.push_back(key("alpha", &S::alpha, between(0, 1), "Decay of the running square.").of({"rmsprop"}));
  keys.push_back(
      key("centered", &S::centered, flag, "Divides by the running variance, not the square.").of({"rmsprop"}));
  keys.push_back(
      key("lr_decay", &S::lr_decay, at_least(0), "Learning rate is lr / (1 + (t - 1) lr_decay).").of({"adagrad"}));
  keys.push_back(
      key("initial_accumulator_value", &S::initial_accumulator_value, at_least(0), "Start of the sum of squares.")
          .of({"adagrad"}));
  keys.push_back(key("eps", &S::eps, normal_float, "Added to the divisor; null: PyTorch's for the kind.")
                     .of({"adam", "adamw", "adadelta", "rmsprop", "adagrad", "lars", "lamb"})
                     .by_default("adam, adamw, rmsprop, lars 1e-8; adadelta, lamb 1e-6; adagrad 1e-10")
                     .also({"epsilon"}));
  keys.push_back(key("trust_coefficient", &S::trust_coefficient, above(0),
                     "LARS: a parameter's rate is lr x this x |p| / (|g| + weight_decay |p| + eps).")
                     .of({"lars"})
                     .also({"trust_coef", "eta_lars"}));
  keys.push_back(key("adapt_norm_and_bias", &S::adapt_norm_and_bias, flag,
                     "true: the trust ratio of each parameter also for norm layers and biases.")
                     .of({"lars", "lamb"}));
  keys.push_back(key("lr_reference_batch", &S::lr_reference_batch, between(1, 9007199254740992.0),
                     "The global batch that lr (and the groups' lr) is meant for; another one scales it (eta_min and "
                     "min_lr stay); null: no scaling. "
                     "Goyal et al.'s warm-up is schedule.warmup with warmup_start_factor reference / global batch.")
                     .also({"base_batch_size", "reference_batch_size"}));
  keys.push_back(key("lr_scaling", &S::lr_scaling, one_of({"linear", "sqrt"}),
                     "With lr_reference_batch: lr times the ratio of the batches, or its square root."));
  keys.push_back(key("maximize", &S::maximize, flag, "Steps up the gradient."));
  keys.push_back(key("decay_norm_and_bias", &S::decay_norm_and_bias, flag,
                     "false: no weight decay on norm layers and biases, unless a group gives one."));
  keys.push_back(
      section_list("groups", &S::groups, parameter_group_schema, anything(),
                   "Parameters with an lr or weight_decay of their own, or frozen; the first group that matches wins.")
          .by_default("[]")
          .also({"param_groups", "parameter_groups"}));
  return keys;
}

}  // namespace

const Schema& parameter_group_schema() {
  using G = ParameterGroupConfig;
  static const Schema schema = [] {
    Schema made;
    made.doc = "One entry of optimizer.groups.";
    made.defaults = std::make_shared<G>();
    made.keys = {
        key("match", &G::match, anything().items(1), "Patterns of parameter names (* and ?), or the words norm, bias.")
            .must()
            .also({"params", "pattern", "names"}),
        key("lr", &G::lr, at_least(0), "Learning rate; null: the optimizer's.").also({"learning_rate"}),
        key("weight_decay", &G::weight_decay, at_least(0), "Weight decay; null: the optimizer's.").also({"wd"}),
        key("trainable", &G::trainable, anything(),
            "false: frozen, as requires_grad=False: no gradient, no update, in no bucket and no norm; still equal on "
            "all ranks. The running statistics of a frozen batch norm go on, as in PyTorch.")
            .also({"requires_grad"})};
    made.finish = [](void* object, const MapView& view) {
      const G& group = *static_cast<const G*>(object);
      if (group.trainable) return;
      if (group.lr) view.fail("lr", "has no effect on a group with trainable: false");
      if (group.weight_decay) view.fail("weight_decay", "has no effect on a group with trainable: false");
    };
    return made;
  }();
  return schema;
}

const Schema& optimizer_schema() {
  static const Schema schema = [] {
    Schema made;
    made.doc = "The optimizer, with PyTorch's names and defaults. Which keys there are depends on `kind`.";
    made.scalar_key = "kind";
    made.defaults = std::make_shared<S>();
    made.keys = make_keys();
    discriminate(made, "kind", &S::kind);
    made.finish = [](void* object, const MapView& view) {
      const S& optimizer = *static_cast<const S*>(object);
      if (optimizer.nesterov && optimizer.dampening != 0) {
        view.fail("nesterov", fmt::format("needs dampening 0, found {}", print_number(optimizer.dampening)));
      }
    };
    return made;
  }();
  return schema;
}

}  // namespace lockstep

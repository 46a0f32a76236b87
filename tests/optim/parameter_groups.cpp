// Assignment of parameters to groups by pattern, and the ranges that come of it.
#include "optim/parameter_groups.h"

#include <doctest/doctest.h>

#include "core/error.h"

using namespace lockstep;

namespace {

// Two layers with a batch norm between, laid out in the order in which backward finishes them: last layer first.
struct Model {
  ParameterStore store;
  std::vector<bool> is_norm{false, false, true, true, false, false};
  Model() {
    store.add_parameter("conv1.weight", {8, 1, 3, 3});
    store.add_parameter("conv1.bias", {8});
    store.add_parameter("bn1.weight", {8});
    store.add_parameter("bn1.bias", {8});
    store.add_parameter("fc.weight", {10, 8});
    store.add_parameter("fc.bias", {10});
    const std::vector<ParameterId> order{4, 5, 2, 3, 0, 1};
    store.lay_out(order, Buffer::host);
  }
  ParameterRange range(const std::string& first, const std::string& last) const {
    const Parameter& a = store.parameters()[static_cast<size_t>(store.find(first))];
    const Parameter& b = store.parameters()[static_cast<size_t>(store.find(last))];
    return {a.offset, b.offset + b.count - a.offset};
  }
};

OptimizerSettings adamw(std::vector<ParameterGroupRule> groups = {}, bool decay_norm_and_bias = true) {
  OptimizerSettings settings;
  settings.kind = "adamw";
  settings.lr = 0.1, settings.weight_decay = 0.05;
  settings.groups = std::move(groups), settings.decay_norm_and_bias = decay_norm_and_bias;
  return resolve(settings);
}

std::string refusal(const Model& model, const OptimizerSettings& settings) {
  try {
    make_parameter_groups(model.store, model.is_norm, settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("without groups everything is one range") {
  const Model model;
  const auto groups = make_parameter_groups(model.store, model.is_norm, adamw());
  REQUIRE_EQ(groups.size(), 1);
  CHECK_EQ(groups[0].name, "all");
  CHECK_EQ(groups[0].lr, 0.1);
  CHECK_EQ(groups[0].weight_decay, 0.05);
  REQUIRE_EQ(groups[0].ranges.size(), 1);
  CHECK(groups[0].ranges[0] == model.range("fc.weight", "conv1.bias"));
}

TEST_CASE("norms and biases can go without weight decay") {
  const Model model;
  const auto groups = make_parameter_groups(model.store, model.is_norm, adamw({}, false));
  REQUIRE_EQ(groups.size(), 2);
  CHECK_EQ(groups[0].weight_decay, 0.05);
  CHECK(groups[0].ranges ==
        std::vector{model.range("fc.weight", "fc.weight"), model.range("conv1.weight", "conv1.weight")});
  CHECK_EQ(groups[1].weight_decay, 0.0);
  CHECK_EQ(groups[1].lr, 0.1);
  CHECK(groups[1].ranges == std::vector{model.range("fc.bias", "bn1.bias"), model.range("conv1.bias", "conv1.bias")});
}

TEST_CASE("the first matching group wins and the rest stays") {
  const Model model;
  const auto groups =
      make_parameter_groups(model.store, model.is_norm, adamw({{{"norm"}, {}, 0.0}, {{"bias", "fc.*"}, 0.5, {}}}));
  REQUIRE_EQ(groups.size(), 3);
  CHECK(groups[0].ranges == std::vector{model.range("bn1.weight", "bn1.bias")});
  CHECK_EQ(groups[0].lr, 0.1);
  CHECK_EQ(groups[0].weight_decay, 0.0);
  CHECK(groups[1].ranges == std::vector{model.range("fc.weight", "fc.bias"), model.range("conv1.bias", "conv1.bias")});
  CHECK_EQ(groups[1].lr, 0.5);
  CHECK_EQ(groups[1].weight_decay, 0.05);
  CHECK_EQ(groups[2].name, "the rest");
  CHECK(groups[2].ranges == std::vector{model.range("conv1.weight", "conv1.weight")});
}

TEST_CASE("a group's own weight decay holds for its biases too") {
  const Model model;
  const auto groups = make_parameter_groups(model.store, model.is_norm, adamw({{{"fc.*"}, {}, 0.2}}, false));
  REQUIRE_EQ(groups.size(), 3);
  CHECK_EQ(groups[0].weight_decay, 0.2);
  CHECK(groups[0].ranges == std::vector{model.range("fc.weight", "fc.bias")});
}

TEST_CASE("a pattern without a match and a group without parameters are errors") {
  const Model model;
  CHECK_EQ(refusal(model, adamw({{{"fc.*", "conv2.*"}, 0.5, {}}})),
           "optimizer.groups[0].match[1]: no parameter matches 'conv2.*' (first parameter: conv1.weight)");
  CHECK_EQ(refusal(model, adamw({{{"*"}, 0.5, {}}, {{"bias"}, 0.1, {}}})),
           "optimizer.groups[1]: every parameter it matches belongs to an earlier group");
  CHECK_EQ(refusal(model, adamw({{{}, 0.5, {}}})),
           "optimizer.groups[0].match: expected at least one pattern, found none");
  CHECK_THROWS_AS(make_parameter_groups(model.store, {true}, adamw()), Error);
  CHECK_THROWS_AS(make_parameter_groups(ParameterStore(), {}, adamw()), Error);
}

TEST_CASE("the first matching group says whether a parameter is frozen") {
  const Model model;
  const OptimizerSettings settings =
      adamw({{.match = {"fc.bias"}, .lr = 0.2}, {.match = {"bias", "conv1.*"}, .trainable = false}});
  const auto frozen = [&](const std::string& name) {
    const ParameterId id = model.store.find(name);
    return is_frozen(settings, model.store.parameters()[static_cast<size_t>(id)],
                     model.is_norm[static_cast<size_t>(id)]);
  };
  CHECK_FALSE(frozen("fc.bias"));  // it belongs to the group before
  CHECK_FALSE(frozen("fc.weight"));
  CHECK(frozen("conv1.weight"));
  CHECK(frozen("conv1.bias"));
  CHECK(frozen("bn1.bias"));
  CHECK_FALSE(frozen("bn1.weight"));
  CHECK_THROWS_WITH(adamw({{.match = {"fc.*"}, .lr = 0.1, .trainable = false}}),
                    "optimizer.groups: lr and weight_decay have no effect in a group with trainable: false");
}

TEST_CASE("frozen parameters lie behind all others and are in no group and no slice") {
  Model model;
  ParameterStore store;
  for (const Parameter& p : model.store.parameters()) store.add_parameter(p.name, p.shape);
  store.freeze(store.find("fc.weight"));
  store.freeze(store.find("bn1.bias"));
  store.lay_out(std::vector<ParameterId>{4, 5, 2, 3, 0, 1}, Buffer::host);
  const auto groups =
      make_parameter_groups(store, model.is_norm, adamw({{.match = {"fc.weight", "bn1.bias"}, .trainable = false}}));
  REQUIRE_EQ(groups.size(), 1);
  REQUIRE_EQ(groups[0].ranges.size(), 1);
  CHECK(groups[0].ranges[0].offset == 0);
  CHECK(groups[0].ranges[0].count <= store.gradients().size());
  CHECK(parameter_slices(store).size() == 4);
  CHECK(store.trainable_parameters() == 4);
  CHECK(store.trainable_values().size() == store.gradients().size());
  CHECK(store.value(store.find("bn1.bias")).size() == 8);
  CHECK(store.canonical_gradient(store.find("bn1.bias")) == std::vector<float>(8));
}

TEST_CASE("slices are one per parameter in arena order") {
  const Model model;
  const auto slices = parameter_slices(model.store);
  REQUIRE_EQ(slices.size(), 6);
  CHECK(slices[0] == model.range("fc.weight", "fc.weight"));
  CHECK(slices[5] == model.range("conv1.bias", "conv1.bias"));
}

TEST_CASE("globs match whole names") {
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("fc.*", "fc.weight"));
  CHECK_FALSE(glob_matches("fc.*", "fc"));
  CHECK_FALSE(glob_matches("fc", "fc.weight"));
  CHECK(glob_matches("*.bias", "layers.0.bias"));
  CHECK(glob_matches("layers.?.bias", "layers.3.bias"));
  CHECK_FALSE(glob_matches("layers.?.bias", "layers.13.bias"));
  CHECK(glob_matches("*a*b*", "xxaxxbab"));
  CHECK_FALSE(glob_matches("*a*b", "xxaxxbax"));
}

TEST_CASE("trust ratios are per parameter and leave norms and biases out") {
  const Model model;
  OptimizerSettings settings;
  settings.kind = "lars", settings.weight_decay = 0.05;
  auto groups = make_parameter_groups(model.store, model.is_norm, resolve(settings));
  REQUIRE_EQ(groups.size(), 2);
  CHECK(groups[0].adapt);
  CHECK(groups[0].ranges ==
        std::vector{model.range("fc.weight", "fc.weight"), model.range("conv1.weight", "conv1.weight")});
  CHECK_FALSE(groups[1].adapt);
  CHECK_EQ(groups[1].weight_decay, 0.05);
  CHECK_EQ(groups[1].ranges.size(), 4);

  settings.decay_norm_and_bias = false;
  CHECK_EQ(make_parameter_groups(model.store, model.is_norm, resolve(settings))[1].weight_decay, 0.0);

  settings.decay_norm_and_bias = true, settings.adapt_norm_and_bias = true;
  groups = make_parameter_groups(model.store, model.is_norm, resolve(settings));
  REQUIRE_EQ(groups.size(), 1);
  CHECK_EQ(groups[0].ranges.size(), 6);
}

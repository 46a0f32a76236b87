// Optimizers over arenas: golden numbers through ranges and groups, padding, state, refusals.
#include "optim/optimizer.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "backend/cpu/optimizer_ops.h"
#include "core/error.h"
#include "optim/golden_optimizer.h"

using namespace lockstep;
using nlohmann::json;
using test::differs_bits;

namespace {

const CpuOptimizerOps kOps;

// PyTorch's (MKL's) square root is sometimes 1 ulp off IEEE's. Among these cases that shows in one value of rmsprop_m
// and one of rmsprop_mc, which momentum carries on (see below); all others are equal to the bit.
std::string differs_from_golden(const json& test_case, const std::vector<float>& values, const std::string& key) {
  const std::vector<float> expected = test::flat_f32(test_case[key]);
  const std::string name = test_case["name"];
  if (name == "rmsprop_mc" && key == "final") return test::differs(values, expected, 0, 4e-8);
  return differs_bits(values, expected, name == "rmsprop_m" ? 1 : 0);
}

// The 37 golden values as two parameters of 20 and 17, with gaps: an arena as the store lays it out.
constexpr size_t kArena = 64, kSecond = 32, kFirstCount = 20, kSecondCount = 17;

void scatter(const std::vector<float>& values, std::vector<float>& arena) {
  std::copy_n(values.begin(), kFirstCount, arena.begin());
  std::copy_n(values.begin() + kFirstCount, kSecondCount, arena.begin() + kSecond);
}

std::vector<float> gather(const std::vector<float>& arena) {
  std::vector<float> values(arena.begin(), arena.begin() + kFirstCount);
  values.insert(values.end(), arena.begin() + kSecond, arena.begin() + kSecond + kSecondCount);
  return values;
}

std::vector<ParameterGroup> one_group(const json& test_case) {
  return {{"all", {{0, kSecond + kSecondCount}}, test_case["settings"]["lr"], test_case["settings"]["weight_decay"]}};
}

std::vector<ParameterGroup> two_groups(const json& test_case) {
  const double lr = test_case["settings"]["lr"], decay = test_case["settings"]["weight_decay"];
  return {{"group 1", {{0, 8}, {kSecond, kSecondCount}}, lr, decay}, {"the rest", {{8, kFirstCount - 8}}, lr, decay}};
}

void run_golden(const json& test_case, const std::vector<ParameterGroup>& groups) {
  const json file = test::golden("optim.json");
  const auto optimizer = make_optimizer(test::optimizer_settings(test_case), groups, kArena, kOps);
  std::vector<float> p(kArena), g(kArena);
  scatter(test::flat_f32(file["p0"]), p);
  for (size_t step = 0; step < 12; ++step) {
    scatter(test::flat_f32(file["gradients"][step]), g);
    optimizer->step(p, g);
    if (step == 0) CHECK_EQ(differs_from_golden(test_case, gather(p), "after_step_1"), "");
  }
  CHECK_EQ(differs_from_golden(test_case, gather(p), "final"), "");
  CHECK_EQ(optimizer->step_count(), 12);
  // Exactly zero, sign included.
  for (size_t i = kFirstCount; i < kSecond; ++i) CHECK_EQ(std::bit_cast<uint32_t>(p[i]), 0);
  for (size_t i = kSecond + kSecondCount; i < kArena; ++i) CHECK_EQ(std::bit_cast<uint32_t>(p[i]), 0);
}

OptimizerSettings kind(const std::string& name) {
  OptimizerSettings settings;
  settings.kind = name;
  return settings;
}

std::string refusal(const OptimizerSettings& settings) {
  try {
    resolve(settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("golden optimizers as one range over the padding") {
  const json cases = test::golden("optim.json")["cases"];
  REQUIRE_EQ(cases.size(), 25);
  for (const json& test_case : cases) {
    CAPTURE(test_case["name"].get<std::string>());
    run_golden(test_case, one_group(test_case));
  }
}

TEST_CASE("golden optimizers as several groups and ranges") {
  const json cases = test::golden("optim.json")["cases"];
  REQUIRE_EQ(cases.size(), 25);
  for (const json& test_case : cases) {
    CAPTURE(test_case["name"].get<std::string>());
    run_golden(test_case, two_groups(test_case));
  }
}

// The one value that is further off than 1 ulp: with the root of step 2 one ulp lower it has PyTorch's very bits.
TEST_CASE("golden rmsprop_mc differs by the last bit of one square root") {
  const json file = test::golden("optim.json");
  for (const json& test_case : file["cases"]) {
    if (test_case["name"] != "rmsprop_mc") continue;
    const size_t index = 34;
    float p = test::flat_f32(file["p0"])[index], square_avg = 0, grad_avg = 0, buffer = 0;
    for (size_t t = 0; t < 12; ++t) {
      const float g = std::fma(p, 0.01f, test::flat_f32(file["gradients"][t])[index]);
      const float weight = static_cast<float>(1 - 0.95);
      square_avg = std::fma(weight * g, g, square_avg * 0.95f);
      grad_avg = std::fma(weight, g, grad_avg * 0.95f);
      float root = std::sqrt(std::fma(-grad_avg, grad_avg, square_avg));
      if (t == 2) root = std::nextafter(root, 0.0f);
      buffer = buffer * 0.9f + g / (root + 1e-8f);
      p = std::fma(buffer, -0.01f, p);
    }
    CHECK_EQ(p, test::flat_f32(test_case["final"])[index]);
  }
}

TEST_CASE("groups have their own learning rate and weight decay") {
  const std::vector<ParameterGroup> groups = {{"group 1", {{0, 2}}, 0.5, 0}, {"the rest", {{2, 2}}, 1.0, 0.25}};
  const auto optimizer = make_optimizer(kind("sgd"), groups, 6, kOps);
  std::vector<float> p(6, 1), g(6, 1);
  optimizer->step(p, g);
  CHECK_EQ(differs_bits(p, std::vector<float>{0.5, 0.5, -0.25, -0.25, 1, 1}), "");  // the last two are in no group
  optimizer->set_lr(1, 0);
  CHECK_EQ(optimizer->lr(1), 0.0);
  optimizer->step(p, g);
  CHECK_EQ(differs_bits(p, std::vector<float>{0, 0, -0.25, -0.25, 1, 1}), "");
  CHECK_EQ(optimizer->group(1).lr, 1.0);
}

// A gradient is made for each range and gone with the next one.
TEST_CASE("a step range by range has the bits of a step on whole arenas") {
  const json cases = test::golden("optim.json")["cases"];
  constexpr size_t arena = 1000;
  for (const json& test_case : cases) {
    CAPTURE(test_case["name"].get<std::string>());
    const double lr = test_case["settings"]["lr"], decay = test_case["settings"]["weight_decay"];
    const OptimizerSettings settings = test::optimizer_settings(test_case);
    const auto whole = make_optimizer(settings, {{"all", {{0, arena}}, lr, decay}}, arena, kOps);
    // This rank's part: [48, 813), in blocks whose ends are none of a vector's.
    const auto part = make_optimizer(settings, {{"all", {{48, 16}, {64, 307}, {371, 442}}, lr, decay}}, arena, kOps);
    std::vector<float> p(arena), q, g(arena), made;
    std::vector<ParameterRange> updated;
    for (size_t i = 0; i < arena; ++i) p[i] = std::sin(static_cast<float>(i));
    q = p;
    for (int step = 0; step < 5; ++step) {
      for (size_t i = 0; i < arena; ++i) g[i] = std::cos(static_cast<float>(i * 7 + static_cast<size_t>(step)));
      whole->step(p, g);
      updated.clear();
      part->step(
          q,
          [&](const ParameterRange& range) -> const float* {
            made.assign(g.begin() + static_cast<long>(range.offset),
                        g.begin() + static_cast<long>(range.offset + range.count));
            return made.data();
          },
          [&](const ParameterRange& range) { updated.push_back(range); });
      CHECK(updated == part->group(0).ranges);
    }
    CHECK_EQ(part->step_count(), 5);
    for (size_t i = 0; i < arena; ++i) {
      CAPTURE(i);
      if (i >= 48 && i < 813) REQUIRE_EQ(std::bit_cast<uint32_t>(p[i]), std::bit_cast<uint32_t>(q[i]));
      if (i < 48 || i >= 813) REQUIRE_EQ(q[i], std::sin(static_cast<float>(i)));
    }
  }
  for (const char* name : {"lars", "lamb"}) {
    const auto optimizer = make_optimizer(kind(name), {{"all", {{0, 16}}, 0.1, 0}}, 16, kOps);
    std::vector<float> p(16);
    CHECK_THROWS_AS(optimizer->step(
                        p, [&](const ParameterRange&) { return p.data(); }, [](const ParameterRange&) {}),
                    Error);
  }
}

TEST_CASE("state copied into a fresh optimizer continues to the same bits") {
  const json file = test::golden("optim.json");
  for (const json& test_case : file["cases"]) {
    CAPTURE(test_case["name"].get<std::string>());
    const OptimizerSettings settings = test::optimizer_settings(test_case);
    const auto straight = make_optimizer(settings, one_group(test_case), kArena, kOps);
    const auto resumed = make_optimizer(settings, one_group(test_case), kArena, kOps);
    std::vector<float> p(kArena), g(kArena), q;
    scatter(test::flat_f32(file["p0"]), p);
    for (size_t step = 0; step < 12; ++step) {
      if (step == 5) {
        q = p;
        resumed->set_step_count(straight->step_count());
        REQUIRE_EQ(resumed->state().size(), straight->state().size());
        for (size_t i = 0; i < straight->state().size(); ++i) {
          CHECK_EQ(resumed->state()[i].name, straight->state()[i].name);
          std::copy(straight->state()[i].values.begin(), straight->state()[i].values.end(),
                    resumed->state()[i].values.begin());
        }
      }
      scatter(test::flat_f32(file["gradients"][step]), g);
      straight->step(p, g);
      if (step >= 5) resumed->step(q, g);
    }
    CHECK_EQ(differs_bits(q, p), "");
  }
}

TEST_CASE("state arrays carry PyTorch's names and only those in use") {
  const auto names = [](const OptimizerSettings& settings) {
    const auto optimizer = make_optimizer(settings, {}, 16, kOps);
    std::string list;
    for (const StateArray& array : optimizer->state()) {
      CHECK_EQ(array.values.size(), 16);
      list += std::string(array.name) + " ";
    }
    return list;
  };
  OptimizerSettings s = kind("sgd");
  CHECK_EQ(names(s), "");
  s.momentum = 0.9;
  CHECK_EQ(names(s), "momentum_buffer ");
  s = kind("adamw");
  CHECK_EQ(names(s), "exp_avg exp_avg_sq ");
  s.amsgrad = true;
  CHECK_EQ(names(s), "exp_avg exp_avg_sq max_exp_avg_sq ");
  CHECK_EQ(names(kind("adadelta")), "square_avg acc_delta ");
  s = kind("rmsprop"), s.centered = true, s.momentum = 0.5;
  CHECK_EQ(names(s), "square_avg grad_avg momentum_buffer ");
  CHECK_EQ(names(kind("adagrad")), "sum ");
}

TEST_CASE("momentum can be moved where there is one") {
  OptimizerSettings s = kind("adam");
  s.beta1 = 0.8;
  const auto adam = make_optimizer(s, {{"all", {{0, 4}}, 0.1, 0}}, 4, kOps);
  CHECK_EQ(adam->momentum(0), 0.8);
  adam->set_momentum(0, 0.5);
  CHECK_EQ(adam->momentum(0), 0.5);
  CHECK_THROWS_AS(adam->set_momentum(0, 1.0), Error);
  CHECK_THROWS_AS(adam->set_momentum(1, 0.5), Error);

  const auto plain = make_optimizer(kind("sgd"), {{"all", {{0, 4}}, 0.1, 0}}, 4, kOps);
  CHECK_THROWS_AS(plain->set_momentum(0, 0.9), Error);  // no buffer
  s = kind("sgd"), s.momentum_scheduled = true;
  const auto scheduled = make_optimizer(s, {{"all", {{0, 4}}, 1, 0}}, 4, kOps);
  scheduled->set_momentum(0, 0.5);
  std::vector<float> p(4), g(4, 1);
  scheduled->step(p, g);
  scheduled->step(p, g);
  CHECK_EQ(p[0], -2.5f);

  const auto adagrad = make_optimizer(kind("adagrad"), {{"all", {{0, 4}}, 0.1, 0}}, 4, kOps);
  CHECK_FALSE(adagrad->has_momentum());
  CHECK_THROWS_AS(adagrad->momentum(0), Error);
}

TEST_CASE("defaults are PyTorch's for the kind") {
  CHECK_EQ(resolve(kind("sgd")).lr.value(), 1e-3);
  CHECK_EQ(resolve(kind("adamw")).weight_decay.value(), 1e-2);
  CHECK_EQ(resolve(kind("adam")).weight_decay.value(), 0.0);
  CHECK_EQ(resolve(kind("adadelta")).lr.value(), 1.0);
  CHECK_EQ(resolve(kind("adadelta")).eps.value(), 1e-6);
  CHECK_EQ(resolve(kind("rmsprop")).lr.value(), 1e-2);
  CHECK_EQ(resolve(kind("adagrad")).eps.value(), 1e-10);
}

TEST_CASE("wrong settings are refused by the name of the key") {
  OptimizerSettings s = kind("adm");
  CHECK_EQ(refusal(s),
           "optimizer.kind: unknown name 'adm', did you mean adam? Known: sgd, adam, adamw, adadelta, "
           "rmsprop, adagrad, lars, lamb");
  s = kind("sgd"), s.nesterov = true;
  CHECK_EQ(refusal(s), "optimizer.nesterov: needs momentum above 0 and dampening 0, found momentum 0 and dampening 0");
  s.momentum = 0.9, s.dampening = 0.1;
  CHECK(refusal(s).starts_with("optimizer.nesterov:"));
  s.dampening = 0;
  CHECK_EQ(refusal(s), "accepted");
  s.lr = -0.1;
  CHECK_EQ(refusal(s), "optimizer.lr: expected a number from 0, found -0.1");
  s.lr = std::nan("");
  CHECK(refusal(s).starts_with("optimizer.lr:"));
  s = kind("adam"), s.beta2 = 1;
  CHECK_EQ(refusal(s), "optimizer.beta2: expected a number in [0, 1), found 1");
  s = kind("adam"), s.eps = 0;
  CHECK(refusal(s).starts_with("optimizer.eps: expected a number above"));
  s.eps = 1e-50;  // zero as a float
  CHECK(refusal(s).starts_with("optimizer.eps: expected a number above"));
  s = kind("adam"), s.momentum = 0.9;
  CHECK_EQ(refusal(s), "optimizer.momentum: adam has no such setting (it has: beta1, beta2, eps, amsgrad)");
  s = kind("sgd"), s.eps = 1e-8;
  CHECK(refusal(s).starts_with("optimizer.eps: sgd has no such setting"));
  s = kind("adagrad"), s.momentum_scheduled = true;
  CHECK_EQ(refusal(s), "schedule.cycle_momentum: optimizer adagrad has no momentum to move, set it to false");
  s = kind("sgd"), s.groups = {{{"*"}, -1.0, {}}};
  CHECK_EQ(refusal(s), "optimizer.groups: lr: expected a number from 0, found -1");
}

TEST_CASE("ranges must lie in the arena and not overlap") {
  CHECK_THROWS_AS(make_optimizer(kind("sgd"), {{"all", {{8, 9}}, 0.1, 0}}, 16, kOps), Error);
  CHECK_THROWS_AS(make_optimizer(kind("sgd"), {{"all", {{8, SIZE_MAX}}, 0.1, 0}}, 16, kOps), Error);
  CHECK_THROWS_AS(make_optimizer(kind("sgd"), {{"a", {{0, 9}}, 0.1, 0}, {"b", {{8, 8}}, 0.1, 0}}, 16, kOps), Error);
  const auto optimizer = make_optimizer(kind("sgd"), {{"all", {{0, 16}}, 0.1, 0}}, 16, kOps);
  std::vector<float> p(16), g(15);
  CHECK_THROWS_AS(optimizer->step(p, g), Error);
}

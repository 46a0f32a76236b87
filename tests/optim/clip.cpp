// Clipping against golden numbers and by hand.
#include "optim/clip.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/optimizer_ops.h"
#include "core/error.h"
#include "support/golden.h"

using namespace lockstep;

static const CpuOptimizerOps kOps;
static const double kInf = std::numeric_limits<double>::infinity();

static double clip_by_norm(std::span<const ParameterRange> slices, std::span<float> gradients, double max_norm,
                           double norm_type = 2) {
  NormClip clip(kOps, slices, max_norm, norm_type);
  CHECK_EQ(clip.norm(), -1);
  clip.clip(gradients);
  return clip.norm();
}

static double gradient_norm(std::span<const ParameterRange> slices, std::vector<float> gradients,
                            double norm_type = 2) {
  return clip_by_norm(slices, gradients, kInf, norm_type);
}

TEST_CASE("golden clipping by norm") {
  const auto cases = test::golden("optim.json")["clip"];
  REQUIRE_EQ(cases.size(), 5);
  for (const auto& test_case : cases) {
    CAPTURE(test_case.dump());
    const double type = test_case["norm_type"].is_string() ? kInf : test_case["norm_type"].get<double>();
    const auto first = test::flat_f32(test_case["before"][0]), second = test::flat_f32(test_case["before"][1]);
    std::vector<float> arena(64);
    std::copy(first.begin(), first.end(), arena.begin());
    std::copy(second.begin(), second.end(), arena.begin() + 32);
    const std::vector<ParameterRange> slices{{0, first.size()}, {32, second.size()}};
    const double norm = clip_by_norm(slices, arena, test_case["max_norm"], type);
    CHECK(norm == doctest::Approx(test_case["returned"].get<double>()).epsilon(3e-7));
    const std::span<const float> after(arena);
    CHECK_EQ(test::differs(after.first(first.size()), test::flat_f32(test_case["after"][0]), 3e-7, 0), "");
    CHECK_EQ(test::differs(after.subspan(32, second.size()), test::flat_f32(test_case["after"][1]), 3e-7, 0), "");
  }
}

// The mean of the micro-batch gradients (30, 40) and (0, 0) is clipped, not each of them.
TEST_CASE("clipping applies once to the accumulated gradient and returns its norm before") {
  std::vector<float> gradients{30, 40};
  const std::vector<ParameterRange> slices{{0, 2}};
  kOps.scale(2, gradients.data(), 0.5f);
  CHECK_EQ(clip_by_norm(slices, gradients, 5), 25.0f);
  CHECK_EQ(test::differs(gradients, std::vector<float>{3, 4}, 1e-6, 0), "");
}

TEST_CASE("any positive norm type is a norm over all slices together") {
  const std::vector<float> gradients{3, -4, 99, 12};
  const std::vector<ParameterRange> slices{{0, 2}, {3, 1}};
  CHECK_EQ(gradient_norm(slices, gradients), 13.0f);
  CHECK_EQ(gradient_norm(slices, gradients, 1), 19.0f);
  CHECK_EQ(gradient_norm(slices, gradients, kInf), 12.0f);
  CHECK(gradient_norm(slices, gradients, 3) == doctest::Approx(std::cbrt(27 + 64 + 1728)).epsilon(1e-6));
  CHECK_EQ(gradient_norm({}, gradients), 0.0f);
}

TEST_CASE("a gradient below the limit is multiplied by exactly one and gaps are left alone") {
  std::vector<float> gradients{0.3f, 0.4f, 99, 0.1f};
  const std::vector<float> before = gradients;
  clip_by_norm(std::vector<ParameterRange>{{0, 2}, {3, 1}}, gradients, 10);
  CHECK_EQ(test::differs_bits(gradients, before), "");
}

TEST_CASE("a NaN reaches every gradient but no gap") {
  std::vector<float> gradients{1, std::nanf(""), 0, 2};
  for (const double type : {1.0, 2.0, 2.5, kInf}) {
    CAPTURE(type);
    std::vector<float> clipped = gradients;
    CHECK(std::isnan(clip_by_norm(std::vector<ParameterRange>{{0, 2}, {3, 1}}, clipped, 1, type)));
    CHECK(std::isnan(clipped[0]));
    CHECK_EQ(clipped[2], 0.0f);
    CHECK(std::isnan(clipped[3]));
  }
}

TEST_CASE("clipping by value clamps every slice") {
  std::vector<float> gradients{-3, 0.25f, 99, 7};
  clip_by_value(kOps, std::vector<ParameterRange>{{0, 2}, {3, 1}}, gradients, 0.5);
  CHECK_EQ(test::differs_bits(gradients, std::vector<float>{-0.5f, 0.25f, 99, 0.5f}), "");
}

TEST_CASE("wrong clipping settings are refused") {
  std::vector<float> g(2);
  const std::vector<ParameterRange> slices{{0, 2}};
  CHECK_THROWS_AS(clip_by_norm(slices, g, -1), Error);
  CHECK_THROWS_AS(clip_by_norm(slices, g, 1, 0), Error);
  CHECK_THROWS_AS(clip_by_norm(slices, g, std::nan("")), Error);
  CHECK_THROWS_AS(clip_by_value(kOps, slices, g, -1), Error);
}

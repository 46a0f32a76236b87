// Dropout: the mask is a pure function of (key, element) with the statistics of independent draws.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using lockstep::test::differs;

static std::vector<uint8_t> mask(int64_t count, double p, uint64_t key) {
  const auto plan = make_cpu_dropout({.count = count, .p = p});
  std::vector<float> x(static_cast<size_t>(count), 1), y(x.size());
  std::vector<uint8_t> saved(plan->saved_bytes());
  plan->forward(x.data(), y.data(), {key}, saved.data());
  std::vector<uint8_t> keep;
  for (float value : y) keep.push_back(value != 0 ? 1 : 0);
  return keep;
}

// Standard deviations by which the count of ones departs from n * probability.
static double departure(const std::vector<uint8_t>& bits, double probability) {
  double ones = 0;
  for (uint8_t bit : bits) ones += bit;
  const double n = static_cast<double>(bits.size());
  return (ones - n * probability) / std::sqrt(n * probability * (1 - probability));
}

TEST_CASE("dropout: the share of survivors is 1 - p for many keys") {
  for (const double p : {0.1, 0.25, 0.5, 0.9})
    for (uint64_t key = 0; key < 8; ++key) CHECK(std::abs(departure(mask(1 << 16, p, key), 1 - p)) < 4.5);
}

TEST_CASE("dropout: neighbours in space and masks of neighbouring keys are independent") {
  const std::vector<uint8_t> a = mask(1 << 16, 0.5, 41), b = mask(1 << 16, 0.5, 42),
                             c = mask(1 << 16, 0.5, 41ULL << 32);
  const auto equal = [&](const std::vector<uint8_t>& u, const std::vector<uint8_t>& v, size_t lag) {
    std::vector<uint8_t> same;
    for (size_t i = 0; i + lag < u.size(); ++i) same.push_back(u[i] == v[i + lag] ? 1 : 0);
    return std::abs(departure(same, 0.5));
  };
  for (const size_t lag : {1, 2, 3, 7, 16, 64, 576, 1024, 4096, 9216}) CHECK(equal(a, a, lag) < 4.5);
  for (const size_t lag : {0, 1, 2, 16, 1024}) {
    CHECK(equal(a, b, lag) < 4.5);
    CHECK(equal(a, c, lag) < 4.5);
  }
}

TEST_CASE("dropout: an element's fate depends on key and index alone") {
  const std::vector<uint8_t> longer = mask(1000, 0.3, 7), shorter = mask(333, 0.3, 7);
  CHECK(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  CHECK(mask(1000, 0.3, 8) != longer);
}

TEST_CASE("dropout: survivors are scaled and backward uses the same mask") {
  const auto plan = make_cpu_dropout({.count = 257, .p = 0.25});
  const std::vector<float> x = oracle::random_floats(257, 1), dy = oracle::random_floats(257, 2);
  std::vector<float> y(257), dx(257);
  std::vector<uint8_t> saved(plan->saved_bytes());
  plan->forward(x.data(), y.data(), {5}, saved.data());
  plan->backward(dy.data(), dx.data(), saved.data());
  const float scale = 1.0F / 0.75F;
  const std::vector<uint8_t> keep = mask(257, 0.25, 5);
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK_EQ(y[i], keep[i] != 0 ? x[i] * scale : 0.0F);
    CHECK_EQ(dx[i], keep[i] != 0 ? dy[i] * scale : 0.0F);
  }
  std::vector<float> in_place = x;
  plan->forward(in_place.data(), in_place.data(), {5}, saved.data());
  CHECK_EQ(differs(in_place, y, 0, 0), "");
}

TEST_CASE("dropout: a mask drawn elsewhere is used as it is") {
  const auto plan = make_cpu_dropout({.count = 5, .p = 0.5});
  const std::vector<float> x{1, 2, 3, 4, 5};
  const std::vector<uint8_t> keep{1, 0, 0, 1, 1};
  std::vector<float> y(5), dx(5);
  std::vector<uint8_t> saved(plan->saved_bytes());
  plan->forward_with_mask(x.data(), y.data(), keep.data(), saved.data());
  CHECK_EQ(differs(y, std::vector<float>{2, 0, 0, 8, 10}, 0, 0), "");
  plan->backward(x.data(), dx.data(), saved.data());
  CHECK_EQ(differs(dx, y, 0, 0), "");
}

TEST_CASE("dropout: p = 0 keeps all and p = 1 keeps nothing and others are errors") {
  CHECK_EQ(mask(100, 0, 1), std::vector<uint8_t>(100, 1));
  CHECK_EQ(mask(100, 1, 1), std::vector<uint8_t>(100, 0));
  CHECK_THROWS_AS(make_cpu_dropout({.count = 1, .p = 1.5}), Error);
  CHECK_THROWS_AS(make_cpu_dropout({.count = 1, .p = NAN}), Error);
}

// Sums without rounding: the nearest double to the true sum, for any order of the terms.
#include "train/metrics/exact_sum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace lockstep;

namespace {

double sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum.value();
}

}  // namespace

TEST_CASE("small terms survive large ones that cancel") {
  CHECK_EQ(sum_of({1e300, 1, -1e300}), 1);
  CHECK_EQ(sum_of({1e-300, 1e300, -1e300, -3e-300}), 1e-300 - 3e-300);
  CHECK_EQ(sum_of({-1e16, -1, 1e16}), -1);
  CHECK_EQ(sum_of({}), 0);
  CHECK_EQ(sum_of({5, -5}), 0);
}

TEST_CASE("single numbers of any size come back") {
  const double smallest = std::numeric_limits<double>::denorm_min(), largest = std::numeric_limits<double>::max();
  for (const double x : {1.0, -1.0, 0.1, -1.0 / 3, 1e-310, smallest, largest, -largest, 4294967296.0, 4294967295.0})
    CHECK_EQ(sum_of({x}), x);
  CHECK_EQ(sum_of({largest, largest}), std::numeric_limits<double>::infinity());
  CHECK_EQ(sum_of({largest, largest, -largest}), largest);
}

TEST_CASE("the sum is rounded once to the nearest and ties to even") {
  const double ulp = std::ldexp(1.0, -52), half = ulp / 2;
  CHECK_EQ(sum_of({1, half}), 1);
  CHECK_EQ(sum_of({1, half, std::ldexp(1.0, -1000)}), 1 + ulp);
  CHECK_EQ(sum_of({1, half, -std::ldexp(1.0, -1000)}), 1);
  CHECK_EQ(sum_of({-1, -half, -std::ldexp(1.0, -1000)}), -1 - ulp);
  CHECK_EQ(sum_of({1 + ulp, half}), 1 + 2 * ulp);
}

TEST_CASE("the order of the terms changes no bit") {
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> fraction(-1, 1);
  std::uniform_int_distribution<int> exponent(-60, 60);
  std::vector<double> terms;
  for (int i = 0; i < 2000; ++i) terms.push_back(std::ldexp(fraction(engine), exponent(engine)));
  const double sum = sum_of(terms);
  long double reference = 0;
  for (const double term : terms) reference += term;
  CHECK(std::abs(static_cast<double>(reference) - sum) <= 1e-12 * std::abs(sum));
  for (int round = 0; round < 20; ++round) {
    std::ranges::shuffle(terms, engine);
    CHECK_EQ(sum_of(terms), sum);
  }
}

TEST_CASE("terms that are not finite show") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_EQ(sum_of({1, infinity}), infinity);
  CHECK_EQ(sum_of({1, -infinity}), -infinity);
  CHECK(std::isnan(sum_of({infinity, -infinity})));
  CHECK(std::isnan(sum_of({std::nan(""), 1})));
}

// Copies between layouts, the exponential, and the accuracy count.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/pointwise.h"
#include "backend/metrics_ops.h"
#include "core/error.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using lockstep::test::differs;

TEST_CASE("reorder: a blocked tensor holds channel c of a pixel at block c / b and lane c mod b") {
  const TensorDesc plain{.shape = Shape{2, 16, 3, 2}}, blocked{.shape = plain.shape, .channel_block = 8};
  const std::vector<float> x = oracle::random_floats(192, 1);
  std::vector<float> y(192);
  reorder_channels(plain, x.data(), blocked, y.data());
  for (size_t n = 0; n < 2; ++n)
    for (size_t c = 0; c < 16; ++c)
      for (size_t s = 0; s < 6; ++s) CHECK_EQ(y[((n * 2 + c / 8) * 6 + s) * 8 + c % 8], x[(n * 16 + c) * 6 + s]);
}

TEST_CASE("reorder: there and back between all blocks is the identity") {
  const Shape shape{2, 32, 3, 5};
  const std::vector<float> x = oracle::random_floats(960, 2);
  for (const int64_t from : {1, 4, 8, 16})
    for (const int64_t to : {1, 4, 8, 16}) {
      const TensorDesc a{.shape = shape, .channel_block = from}, b{.shape = shape, .channel_block = to};
      std::vector<float> there(960), back(960);
      reorder_channels(a, x.data(), b, there.data());
      reorder_channels(b, there.data(), a, back.data());
      CHECK_EQ(differs(back, x, 0, 0), "");
    }
}

TEST_CASE("reorder: different shapes and blocks that do not fit are errors") {
  const std::vector<float> x(24);
  std::vector<float> y(24);
  const TensorDesc six{.shape = Shape{2, 6, 2}};
  CHECK_THROWS_AS(reorder_channels(six, x.data(), {.shape = Shape{2, 12}}, y.data()), Error);
  CHECK_THROWS_AS(reorder_channels(six, x.data(), {.shape = six.shape, .channel_block = 4}, y.data()), Error);
}

TEST_CASE("exp: within two units in the last place from minus 87 to 88") {
  std::vector<float> x, expected;
  for (double at = -87; at < 88; at += 0.0137) x.push_back(static_cast<float>(at));
  for (int i = -200; i <= 200; ++i) x.push_back(static_cast<float>(i) * 1e-4F);
  for (float value : x) expected.push_back(static_cast<float>(std::exp(static_cast<double>(value))));
  std::vector<float> y(x.size());
  pointwise_kernels().exp(x.size(), x.data(), y.data());
  CHECK_EQ(lockstep::test::differs_bits(y, expected, 2), "");
}

TEST_CASE("exp: zero is exactly one and the ends behave") {
  const std::vector<float> x{0, -0.0F, -1000, -INFINITY, 1000, INFINITY, NAN};
  std::vector<float> y(x.size());
  pointwise_kernels().exp(x.size(), x.data(), y.data());
  CHECK_EQ(differs(y, std::vector<float>{1, 1, 0, 0, INFINITY, INFINITY, NAN}, 0, 0), "");
}

TEST_CASE("accuracy: the first maximum counts and a row with NaN never does") {
  std::vector<float> x{1,      3, 3,   2, /**/ 5,         0,         0,         5,        /**/ NAN, 1, 0, 0,
                       /**/ 0, 9, NAN, 1, /**/ -INFINITY, -INFINITY, -INFINITY, -INFINITY};
  std::vector<int64_t> labels{1, 3, 0, 1, 0};
  const TensorView output{x.data(), {.shape = Shape{5, 4}}};
  CHECK_EQ(count_correct(output, {labels.data(), {.shape = Shape{5}, .dtype = DType::i64}}), 2);
  labels = {2, 0, 1, 2, -100};
  CHECK_EQ(count_correct(output, {labels.data(), {.shape = Shape{5}, .dtype = DType::i64}}), 1);
  CHECK_THROWS_AS(count_correct(output, {labels.data(), {.shape = Shape{4}, .dtype = DType::i64}}), Error);
}

// Normalisation plans against the oracle, in every layout.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/batch_norm.h"
#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/pointwise.h"
#include "core/error.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using lockstep::test::differs;
using oracle::narrow;
using oracle::random_floats;
using oracle::widen;

namespace {

std::vector<float> convert(const TensorDesc& from, const std::vector<float>& x, const TensorDesc& to) {
  std::vector<float> y(x.size());
  reorder_channels(from, x.data(), to, y.data());
  return y;
}

}  // namespace

TEST_CASE("batch norm: outputs and gradients equal the oracle in every layout") {
  for (const Shape& shape : {Shape{5, 32}, Shape{3, 16, 4, 5}, Shape{2, 48, 3, 3}, Shape{4, 16, 7}})
    for (const int64_t block : {1, 4, 8, 16})
      for (const bool affine : {true, false}) {
        CAPTURE(shape.str());
        CAPTURE(block);
        const int64_t channels = shape[1], inner = shape.numel() / shape[0] / channels;
        const auto count = static_cast<size_t>(shape.numel()), c = static_cast<size_t>(channels);
        const TensorDesc plain{.shape = shape}, stored{.shape = shape, .channel_block = block};
        std::vector<float> x = random_floats(count, 1, 9, 12);  // a mean well away from zero
        const std::vector<float> dy = random_floats(count, 2), w = random_floats(c, 3), b = random_floats(c, 4);
        const auto plan = make_cpu_batch_norm({.input = stored, .affine = affine});
        std::vector<float> rm(c, 0.5F), rv(c, 2), y(count, NAN), dx(count, NAN), dw(c, NAN), db(c, NAN);
        float tracked = 0;
        std::vector<double> saved(plan->saved_bytes() / sizeof(double));
        const std::vector<float> xs = convert(plain, x, stored), dys = convert(plain, dy, stored);
        const float *wp = affine ? w.data() : nullptr, *bp = affine ? b.data() : nullptr;
        plan->forward(xs.data(), wp, bp, rm.data(), rv.data(), &tracked, y.data(), saved.data());
        plan->backward(xs.data(), dys.data(), wp, dx.data(), affine ? dw.data() : nullptr, affine ? db.data() : nullptr,
                       false, saved.data(), nullptr);
        const oracle::Values wide_w = affine ? widen(w) : oracle::Values{},
                             wide_b = affine ? widen(b) : oracle::Values{};
        CHECK_EQ(
            differs(convert(stored, y, plain),
                    narrow(oracle::batch_norm(shape[0], channels, inner, 1e-5, widen(x), wide_w, wide_b)), 1e-5, 2e-6),
            "");
        const auto grad = oracle::batch_norm_backward(shape[0], channels, inner, 1e-5, widen(x), wide_w, widen(dy));
        CHECK_EQ(differs(convert(stored, dx, plain), narrow(grad.dx), 1e-5, 2e-6), "");
        if (affine) {
          CHECK_EQ(differs(dw, narrow(grad.dweight), 1e-5, 1e-5), "");
          CHECK_EQ(differs(db, narrow(grad.dbias), 1e-5, 1e-6), "");
        }
        const auto statistics = oracle::batch_statistics(shape[0], channels, inner, widen(x));
        const double n = static_cast<double>(shape[0] * inner);
        for (size_t i = 0; i < c; ++i) {
          CHECK_EQ(rm[i], doctest::Approx(0.9 * 0.5 + 0.1 * statistics.mean[i]).epsilon(1e-6));
          CHECK_EQ(rv[i], doctest::Approx(0.9 * 2 + 0.1 * statistics.variance[i] * n / (n - 1)).epsilon(1e-6));
        }
        CHECK_EQ(tracked, 1);
      }
}

TEST_CASE("batch norm: accumulate adds to the parameter gradients") {
  const auto plan = make_cpu_batch_norm({.input = {.shape = Shape{4, 3}}});
  const std::vector<float> x = random_floats(12, 1), dy = random_floats(12, 2), w{1, 2, 3};
  std::vector<float> rm(3), rv(3), y(12), dx(12), dw(3), db(3);
  std::vector<double> saved(plan->saved_bytes() / sizeof(double));
  float tracked = 0;
  plan->forward(x.data(), w.data(), w.data(), rm.data(), rv.data(), &tracked, y.data(), saved.data());
  plan->backward(x.data(), dy.data(), w.data(), dx.data(), dw.data(), db.data(), false, saved.data(), nullptr);
  std::vector<float> dw2 = dw, db2 = db;
  plan->backward(x.data(), dy.data(), w.data(), dx.data(), dw2.data(), db2.data(), true, saved.data(), nullptr);
  for (size_t c = 0; c < 3; ++c) CHECK_EQ(dw2[c], 2 * dw[c]);
  for (size_t c = 0; c < 3; ++c) CHECK_EQ(db2[c], 2 * db[c]);
}

TEST_CASE("batch norm: statistics of two shares merge into those of the whole") {
  const Shape whole{7, 16, 3, 2}, first{4, 16, 3, 2}, second{3, 16, 3, 2};
  const std::vector<float> x = random_floats(7 * 16 * 6, 3, -2, 8);
  std::vector<float> scratch(16);
  std::vector<double> mean(16), m2(16), other_mean(16), other_m2(16), all_mean(16), all_m2(16);
  ChannelStatistics a{0, mean, m2}, b{0, other_mean, other_m2}, all{0, all_mean, all_m2};
  compute_statistics(channel_layout({.shape = first}), x.data(), a, scratch.data());
  compute_statistics(channel_layout({.shape = second}), x.data() + 4 * 16 * 6, b, scratch.data());
  compute_statistics(channel_layout({.shape = whole}), x.data(), all, scratch.data());
  merge_statistics(a, b);
  CHECK_EQ(a.count, 42);
  for (size_t c = 0; c < 16; ++c) {
    CHECK_EQ(mean[c], doctest::Approx(all_mean[c]).epsilon(1e-12));
    CHECK_EQ(m2[c], doctest::Approx(all_m2[c]).epsilon(1e-12));
  }
}

TEST_CASE("batch norm: a tiny variance around a large mean keeps its digits") {
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) x.push_back(4096.0F + static_cast<float>(i % 4) / 1024);
  std::vector<double> mean(1), m2(1);
  std::vector<float> scratch(1);
  ChannelStatistics s{0, mean, m2};
  compute_statistics(channel_layout({.shape = Shape{64, 1}}), x.data(), s, scratch.data());
  CHECK_EQ(m2[0] / 64, doctest::Approx(1.25 / 1024 / 1024).epsilon(1e-9));
}

TEST_CASE("batch norm: one value per channel is an error in training and fine in inference") {
  BatchNormSpec spec{.input = {.shape = Shape{1, 3}}};
  CHECK_THROWS_WITH_AS(make_cpu_batch_norm(spec), doctest::Contains("Expected more than 1 value per channel"), Error);
  spec.phase = Phase::inference;
  CHECK_NOTHROW(make_cpu_batch_norm(spec));
  spec.phase = Phase::training;
  spec.input.shape = Shape{1, 3, 1, 2};
  CHECK_NOTHROW(make_cpu_batch_norm(spec));
}

TEST_CASE("layer norm: outputs and gradients equal the oracle") {
  for (const int64_t inner : {1, 5, 64}) {
    const auto count = static_cast<size_t>(7 * inner), n = static_cast<size_t>(inner);
    const std::vector<float> x = random_floats(count, 1, 2, 5), dy = random_floats(count, 2), w = random_floats(n, 3),
                             b = random_floats(n, 4);
    const auto plan = make_cpu_layer_norm({.outer = 7, .inner = inner});
    std::vector<float> y(count), dx(count), dw(n), db(n);
    std::vector<double> saved(plan->saved_bytes() / 8), workspace(plan->workspace_bytes() / 8);
    plan->forward(x.data(), w.data(), b.data(), y.data(), saved.data());
    plan->backward(x.data(), dy.data(), w.data(), dx.data(), dw.data(), db.data(), false, saved.data(),
                   workspace.data());
    CHECK_EQ(differs(y, narrow(oracle::layer_norm(7, inner, 1e-5, widen(x), widen(w), widen(b))), 1e-6, 1e-6), "");
    const auto grad = oracle::layer_norm_backward(7, inner, 1e-5, widen(x), widen(w), widen(dy));
    CHECK_EQ(differs(dx, narrow(grad.dx), 1e-6, 1e-6), "");
    CHECK_EQ(differs(dw, narrow(grad.dweight), 1e-6, 1e-6), "");
    CHECK_EQ(differs(db, narrow(grad.dbias), 1e-6, 1e-6), "");
  }
}

TEST_CASE("group norm: outputs and gradients equal the oracle") {
  for (const int64_t groups : {1, 2, 6}) {
    const size_t count = 3 * 6 * 4 * 2;
    const std::vector<float> x = random_floats(count, 1, 2, 5), dy = random_floats(count, 2), w = random_floats(6, 3),
                             b = random_floats(6, 4);
    const auto plan = make_cpu_group_norm({.input = {.shape = Shape{3, 6, 4, 2}}, .groups = groups});
    std::vector<float> y(count), dx(count), dw(6), db(6);
    std::vector<double> saved(plan->saved_bytes() / 8), workspace(plan->workspace_bytes() / 8);
    plan->forward(x.data(), w.data(), b.data(), y.data(), saved.data());
    plan->backward(x.data(), dy.data(), w.data(), dx.data(), dw.data(), db.data(), false, saved.data(),
                   workspace.data());
    CHECK_EQ(differs(y, narrow(oracle::group_norm(3, 6, 8, groups, 1e-5, widen(x), widen(w), widen(b))), 1e-6, 1e-6),
             "");
    const auto grad = oracle::group_norm_backward(3, 6, 8, groups, 1e-5, widen(x), widen(w), widen(dy));
    CHECK_EQ(differs(dx, narrow(grad.dx), 1e-6, 1e-6), "");
    CHECK_EQ(differs(dw, narrow(grad.dweight), 1e-6, 1e-6), "");
    CHECK_EQ(differs(db, narrow(grad.dbias), 1e-6, 1e-6), "");
  }
  CHECK_THROWS_AS(make_cpu_group_norm({.input = {.shape = Shape{3, 6}}, .groups = 4}), Error);
}

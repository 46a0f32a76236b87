// The noise scale against the statistics of gradients whose mean and covariance are known.
#include "dist/noise_scale.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backend/cpu/optimizer_ops.h"
#include "core/error.h"

using namespace lockstep;

namespace {

const CpuOptimizerOps kOps;

// Stands for ranks that have all spoken: an all-reduce of any rank's values gives the prepared sums.
class PreparedSums final : public Communicator {
 public:
  std::vector<double> sums;
  std::string_view name() const override { return "prepared"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void all_reduce_sum(std::span<float>) override { throw_error("not expected"); }
  void all_reduce(std::span<double> values, ReduceOp op) override {
    REQUIRE_EQ(values.size(), sums.size());
    REQUIRE(op == ReduceOp::sum);
    std::copy(sums.begin(), sums.end(), values.begin());
  }
  void broadcast(std::span<std::byte>, int) override { throw_error("not expected"); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte>) override { throw_error("not expected"); }
  void barrier() override {}
};

struct Shares {
  double own_square = 0, square = 0;  // of the first rank's sum, of the whole sum
  std::vector<double> sums{0, 0, 0};
};

// Sums of samples' gradients in `dimensions` with mean 1 and standard deviation `sigma` in each.
Shares draw(std::mt19937& engine, const std::vector<int>& samples, size_t dimensions, double sigma) {
  std::normal_distribution<double> normal(1, sigma);
  Shares shares;
  std::vector<double> whole(dimensions);
  for (const int count : samples) {
    double square = 0;
    for (double& total : whole) {
      double sum = 0;
      for (int i = 0; i < count; ++i) sum += normal(engine);
      square += sum * sum;
      total += sum;
    }
    if (&count == samples.data()) shares.own_square = square;
    if (count == 0) continue;
    shares.sums[0] += square / (count * count), shares.sums[1] += 1.0 / count, shares.sums[2] += 1;
  }
  for (const double total : whole) shares.square += total * total;
  return shares;
}

}  // namespace

TEST_CASE("the noise scale of known gradients is found for equal and unequal shares") {
  for (const std::vector<int>& samples : {std::vector<int>{4, 4}, {1, 5, 2}, {8, 0, 3}}) {
    std::mt19937 engine(7);
    PreparedSums ranks;
    NoiseScale noise(ranks, kOps);
    int64_t all = 0;
    for (const int count : samples) all += count;
    constexpr size_t kDimensions = 2000;
    constexpr double kSigma = 2;  // S = 2000 * 4, |G|^2 = 2000: B_simple = 4
    double trace = 0, square = 0;
    constexpr int kSteps = 50;
    for (int step = 0; step < kSteps; ++step) {
      const Shares shares = draw(engine, samples, kDimensions, kSigma);
      ranks.sums = shares.sums;
      const NoiseEstimate& estimate = noise.add(shares.own_square, samples[0], shares.square, all);
      trace += estimate.trace / kSteps, square += estimate.gradient_square / kSteps;
    }
    CHECK_EQ(trace, doctest::Approx(8000).epsilon(0.05));
    CHECK_EQ(square, doctest::Approx(2000).epsilon(0.05));
    CHECK_EQ(noise.last().noise_scale, doctest::Approx(4).epsilon(0.1));
  }
}

TEST_CASE("equal shares give the formula of the paper") {
  PreparedSums ranks;
  NoiseScale noise(ranks, kOps);
  // Two ranks of 3 samples: |g_r|^2 = 5 and 7, |g|^2 = 4.
  ranks.sums = {12, 2.0 / 3, 2};
  const NoiseEstimate& estimate = noise.add(5 * 9, 3, 4 * 36, 6);
  CHECK_EQ(estimate.gradient_square, doctest::Approx((6 * 4.0 - 3 * 6.0) / 3));
  CHECK_EQ(estimate.trace, doctest::Approx((6 - 4.0) / (1.0 / 3 - 1.0 / 6)));
  CHECK_EQ(estimate.noise_scale, doctest::Approx(6));
}

TEST_CASE("fewer than two ranks with samples give no estimate") {
  PreparedSums ranks;
  NoiseScale noise(ranks, kOps);
  ranks.sums = {5, 0.25, 1};
  CHECK(std::isnan(noise.add(80, 4, 80, 4).noise_scale));
  CHECK(std::isnan(noise.last().trace));
  ranks.sums = {12, 2.0 / 3, 2};
  CHECK_EQ(noise.add(45, 3, 144, 6).noise_scale, doctest::Approx(6));
  ranks.sums = {5, 0.25, 1};
  CHECK_EQ(noise.add(80, 4, 80, 4).noise_scale, doctest::Approx(6));  // the last one stands
  CHECK(std::isnan(noise.last().trace));
}

TEST_CASE("buckets seen before the sum and gradients after it give the estimate") {
  PreparedSums ranks;
  NoiseScale noise(ranks, kOps);
  ranks.sums = {12, 2.0 / 3, 2};  // as above: |g_r|^2 = 5 and 7 with 3 samples each, |g|^2 = 4
  const std::vector<float> first{3, 0, 0}, second{0, 6}, reduced{12, 0, 0, 0, 0};
  for (const bool divided : {false, true}) {  // sums of gradients, or those sums divided by all 6 samples
    std::vector<float> a = first, b = second, g = reduced;
    if (divided)
      for (std::vector<float>* values : {&a, &b, &g})
        for (float& value : *values) value /= 6;
    noise.begin_step(true);
    noise.before_sum({}, a);
    noise.before_sum({}, b);
    noise.end_window(3);
    noise.end_step(g, 6, divided);
    CHECK_EQ(noise.last().gradient_square, doctest::Approx(2));
    CHECK_EQ(noise.last().trace, doctest::Approx(12));
  }
  const double before = noise.last().noise_scale;
  ranks.sums = {};  // nothing may be asked of the ranks
  noise.begin_step(false);
  noise.before_sum({}, first);
  noise.end_window(3);
  noise.end_step(reduced, 6, true);
  CHECK_EQ(noise.last().noise_scale, before);
}

TEST_CASE("a step that is not finite does not stay in the averages") {
  PreparedSums ranks;
  NoiseScale noise(ranks, kOps);
  ranks.sums = {12, 2.0 / 3, 2};
  noise.add(45, 3, 144, 6);
  noise.add(45, 3, NAN, 6);
  CHECK(std::isnan(noise.last().trace));
  CHECK_EQ(noise.add(45, 3, 144, 6).noise_scale, doctest::Approx(6));
}

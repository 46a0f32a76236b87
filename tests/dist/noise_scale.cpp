// The noise scale against the statistics of gradients whose mean and covariance are known.
#include "dist/noise_scale.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/error.h"

using namespace lockstep;

namespace {

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
    NoiseScale noise(ranks);
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
  NoiseScale noise(ranks);
  // Two ranks of 3 samples: |g_r|^2 = 5 and 7, |g|^2 = 4.
  ranks.sums = {12, 2.0 / 3, 2};
  const NoiseEstimate& estimate = noise.add(5 * 9, 3, 4 * 36, 6);
  CHECK_EQ(estimate.gradient_square, doctest::Approx((6 * 4.0 - 3 * 6.0) / 3));
  CHECK_EQ(estimate.trace, doctest::Approx((6 - 4.0) / (1.0 / 3 - 1.0 / 6)));
  CHECK_EQ(estimate.noise_scale, doctest::Approx(6));
}

TEST_CASE("fewer than two ranks with samples give no estimate") {
  PreparedSums ranks;
  NoiseScale noise(ranks);
  ranks.sums = {5, 0.25, 1};
  CHECK(std::isnan(noise.add(80, 4, 80, 4).noise_scale));
  CHECK(std::isnan(noise.last().trace));
  ranks.sums = {12, 2.0 / 3, 2};
  CHECK_EQ(noise.add(45, 3, 144, 6).noise_scale, doctest::Approx(6));
  ranks.sums = {5, 0.25, 1};
  CHECK_EQ(noise.add(80, 4, 80, 4).noise_scale, doctest::Approx(6));  // the last one stands
  CHECK(std::isnan(noise.last().trace));
}

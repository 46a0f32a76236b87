// ranks: 1 2 3 4
// links: train
// One weight w = 0 and the loss (w x - y)^2 with x = 1: a sample's gradient is -2 y, so every wrong average shows as an
// exact number. The expected averages are plain loops over who has which sample.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "support/rank_device.h"
#include "train/trainer.h"

using namespace lockstep;
using test::RankDevice;

namespace {

struct Case {
  std::vector<double> y;
  int64_t batch, accumulate;
};

// Halves of the gradients (as of the loss (w x - y)^2 / 2) of each step of one epoch.
std::vector<double> expected(const Case& c, int64_t ranks, bool average_ranks) {
  const auto samples = static_cast<int64_t>(c.y.size());
  const int64_t micro_batch = c.batch * ranks, micro_steps = (samples + micro_batch - 1) / micro_batch;
  std::vector<double> gradients;
  for (int64_t first = 0; first < micro_steps; first += c.accumulate) {
    const int64_t window = std::min(c.accumulate, micro_steps - first);
    double sum = 0, sum_of_means = 0;
    int64_t count = 0;
    for (int64_t m = first; m < first + window; ++m) {
      for (int64_t rank = 0; rank < ranks; ++rank) {
        double local = 0;
        int64_t rows = 0;
        for (int64_t j = 0; j < c.batch; ++j) {
          const int64_t position = m * micro_batch + j * ranks + rank;
          if (position < samples) local -= c.y[static_cast<size_t>(position)], ++rows;
        }
        sum += local, count += rows;
        if (rows > 0) sum_of_means += local / static_cast<double>(rows);
      }
    }
    gradients.push_back(average_ranks ? sum_of_means / static_cast<double>(ranks * window)
                                      : sum / static_cast<double>(count));
  }
  return gradients;
}

std::vector<double> trained(const Case& c, RankDevice& device, const std::string& average, bool overlap = true,
                            const std::string& reduction = "mean") {
  const Config config =
      parse_config(fmt::format("model: {{layers: [{{linear: {{out: 1, bias: false}}}}]}}\n"
                               "data: {{train: {{kind: synthetic, name: constant, samples: {}, values: [{}]}}}}\n"
                               "sampler: {{shuffle: false}}\n"
                               "train: {{loss: mse, batch_size: {}, accumulate: {}, reduction: {}}}\n"
                               "optimizer: {{kind: sgd, lr: 0}}\n"
                               "distributed: {{average: {}, overlap: {}}}\n",
                               c.y.size(), fmt::join(c.y, ", "), c.batch, c.accumulate, reduction, average, overlap),
                   "averages.yaml", {});
  RunLog log("", false);
  Trainer trainer(config, device.backend(), device.comm(), log);
  const float zero = 0;
  trainer.network().store().set_canonical(0, {&zero, 1});
  trainer.begin_epoch(0);
  std::vector<double> gradients;
  for (int64_t k = 0; k < trainer.plan().epoch().steps(); ++k) {
    trainer.train_step(k);
    gradients.push_back(trainer.network().store().canonical_gradient(0)[0] / 2.0);
  }
  return gradients;
}

void check_case(const Case& c, const std::vector<double>& samples_at_two, const std::vector<double>& ranks_at_two) {
  const MpiEnvironment env;
  RankDevice device(env, "auto");
  for (const bool average_ranks : {false, true}) {
    const auto gradients = trained(c, device, average_ranks ? "ranks" : "samples");
    const auto wanted = expected(c, env.size(), average_ranks);
    REQUIRE(gradients.size() == wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) CHECK(gradients[k] == doctest::Approx(wanted[k]).epsilon(1e-6));
    if (env.size() != 2) continue;
    const auto& known = average_ranks ? ranks_at_two : samples_at_two;
    REQUIRE(gradients.size() == known.size());
    for (size_t k = 0; k < known.size(); ++k) CHECK(gradients[k] == doctest::Approx(known[k]).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("ranks with unequal batches: three sevenths and not one half") {
  check_case({{0, 1, 0, 1, 0, 1, 0}, 4, 1}, {-3.0 / 7}, {-0.5});
}

TEST_CASE("unequal micro-batches: a fifth and not a third") {
  check_case({{0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, 2, 3}, {-0.2}, {-1.0 / 3});
}

TEST_CASE("a short last window is divided by its own size") {
  check_case({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1, 4}, {-4.5, -9.5}, {-4.5, -9.5});
}

TEST_CASE("a sample on one rank alone has its whole gradient") {
  const MpiEnvironment env;
  Case c{std::vector<double>(static_cast<size_t>(env.size()) + 1, 1), 1, 1};
  c.y.back() = 5;
  RankDevice device(env, "auto");
  CHECK(trained(c, device, "samples").back() == -5);
  CHECK(trained(c, device, "ranks").back() == doctest::Approx(-5.0 / env.size()).epsilon(1e-6));  // as DDP with join
}

TEST_CASE("a window of one micro-step of two rows equals a plain step on them") {
  check_case({{0, 0, 0, 0, 0, 0, 0, 0, 3, 5}, 2, 4}, {-0.8}, {-8.0 / 6});
  const MpiEnvironment env;
  if (env.size() > 1) return;
  RankDevice device(env, "auto");
  const auto gradients = trained({{0, 0, 0, 0, 0, 0, 0, 0, 3, 5}, 2, 4}, device, "samples");
  REQUIRE(gradients.size() == 2);
  CHECK(gradients[1] == -4);  // and not a quarter of it
}

TEST_CASE("a rank without rows in the last micro-step gives what it had before") {
  // Two ranks: rank 1 has row 1 in the first micro-step and none in the last.
  check_case({{1, 2, 6}, 1, 2}, {-3}, {-(1 + 2 + 6) / 4.0});
}

TEST_CASE("a sum of losses is not divided by anything") {
  const MpiEnvironment env;
  RankDevice device(env, "auto");
  const Case c{{1, 2, 3, 4, 5, 6, 7}, 2, 2};
  const auto means = expected(c, env.size(), false);
  const auto sums = trained(c, device, "samples", true, "sum");
  REQUIRE(sums.size() == means.size());
  const int64_t window = 4 * env.size();
  for (size_t k = 0; k < sums.size(); ++k) {
    const auto rows = static_cast<double>(std::min<int64_t>(7 - static_cast<int64_t>(k) * window, window));
    CHECK(sums[k] == doctest::Approx(means[k] * rows).epsilon(1e-6));
  }
}

TEST_CASE("class weights: both averages are those of the weighted loss") {
  // Two classes with equal logits: the gradient of a sample's logit 0 is w[y] (0.5 - (y == 0)) times x = 1.
  const MpiEnvironment env;
  RankDevice device(env, "auto");
  const std::vector<int> y{0, 1, 1, 1, 0, 0, 1};
  const double weights[] = {1, 3};
  for (const char* average : {"samples", "ranks"}) {
    const Config config = parse_config(
        fmt::format("model: {{layers: [{{linear: {{out: 2, bias: false}}}}]}}\n"
                    "data: {{train: {{kind: synthetic, name: constant, samples: 7, classes: 2, values: [{}]}}}}\n"
                    "sampler: {{shuffle: false}}\n"
                    "train: {{batch_size: 2, accumulate: 8, class_weights: [1, 3]}}\n"
                    "optimizer: {{kind: sgd, lr: 0}}\n"
                    "distributed: {{average: {}}}\n",
                    fmt::join(y, ", "), average),
        "averages.yaml", {});
    RunLog log("", false);
    Trainer trainer(config, device.backend(), device.comm(), log);
    const float zeros[2] = {0, 0};
    trainer.network().store().set_canonical(0, zeros);
    trainer.begin_epoch(0);
    trainer.train_step(0);

    const int ranks = env.size(), micro_batch = 2 * ranks, window = (7 + micro_batch - 1) / micro_batch;
    double sum = 0, weight = 0, means = 0;
    for (int m = 0; m < window; ++m) {
      for (int rank = 0; rank < ranks; ++rank) {
        double local = 0, local_weight = 0;
        for (int j = 0; j < 2; ++j) {
          const int at = m * micro_batch + j * ranks + rank;
          if (at >= 7) continue;
          const double w = weights[y[static_cast<size_t>(at)]];
          local += w * (y[static_cast<size_t>(at)] == 0 ? -0.5 : 0.5), local_weight += w;
        }
        sum += local, weight += local_weight;
        if (local_weight > 0) means += local / local_weight;
      }
    }
    const double wanted = std::string(average) == "ranks" ? means / (ranks * window) : sum / weight;
    CHECK(trainer.network().store().canonical_gradient(0)[0] == doctest::Approx(wanted).epsilon(1e-6));
  }
}

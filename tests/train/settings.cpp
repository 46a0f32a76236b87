// Settings that are found by trying: what a range test says about rates, which trials are made and which one wins.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "config_support.h"
#include "train/settings/lr_find.h"
#include "train/settings/tune.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<double> rates(size_t count) {  // 1e-6 to 10
  std::vector<double> rate;
  for (size_t i = 0; i < count; ++i)
    rate.push_back(1e-6 * std::pow(1e7, static_cast<double>(i) / static_cast<double>(count - 1)));
  return rate;
}

// Flat, falling around 1e-3, rising from 1 on.
std::vector<double> losses(const std::vector<double>& rate) {
  std::vector<double> loss;
  for (const double r : rate) loss.push_back(1 + 1 / (1 + std::pow(r / 1e-3, 2)) + std::pow(r, 4));
  return loss;
}

}  // namespace

TEST_CASE("lr-find chooses a rate at which the loss falls and well below where it rises") {
  const std::vector<double> rate = rates(200);
  const LrCurve curve = lr_curve(rate, losses(rate));
  const LrChoice choice = choose_rate(curve);
  CHECK(choice.steepest > 3e-4);
  CHECK(choice.steepest < 1e-2);  // the smoothed curve lags behind
  CHECK(choice.minimum > 0.1);
  CHECK(choice.minimum < 2);
  CHECK(choice.chosen <= choice.steepest);
  CHECK(choice.chosen <= choice.minimum / 10);
  CHECK(lr_find_svg(curve, choice).find("<svg") != std::string::npos);
}

TEST_CASE("lr-find: the curve ends where the loss is not finite or has run away") {
  const std::vector<double> rate = rates(100);
  std::vector<double> loss = losses(rate);
  loss[60] = std::numeric_limits<double>::quiet_NaN();
  CHECK(lr_curve(rate, loss).smoothed.size() == 60);
  loss = losses(rate);
  for (size_t i = 70; i < 100; ++i) loss[i] = 1e6;
  CHECK(lr_curve(rate, loss).smoothed.size() == 71);
}

TEST_CASE("lr-find refuses a loss that never falls and a range that is none") {
  const std::vector<double> rate = rates(50);
  std::vector<double> loss;
  for (size_t i = 0; i < 50; ++i) loss.push_back(1 + static_cast<double>(i));
  CHECK_THROWS_WITH_AS(
      choose_rate(lr_curve(rate, loss)),
      "the loss does not fall at any rate from 1e-06 on: begin with a smaller one (--from), or look at "
      "model and data",
      Error);
  const Config config = parse("");
  CHECK_THROWS_AS(lr_find_config(config, {.from = 1, .to = 0.1}, "x"), Error);
  CHECK_THROWS_AS(lr_find_config(config, {.from = 0, .to = 0.1}, "x"), Error);
  CHECK_THROWS_AS(lr_find_config(config, {.steps = 3}, "x"), Error);
}

TEST_CASE("lr-find trains with the run's model and data and nothing else of it") {
  const Config test = lr_find_config(
      parse("schedule: {kind: cosine, warmup: 3}\ncheckpoint: {every: 1}\ntrain: {epochs: 1, on_nonfinite: stop}\n"
            "distributed: {sharded_update: on}\n"),
      {.from = 1e-5, .to = 1, .steps = 50}, "runs/lr");
  CHECK(test.schedule.kind == "exponential");
  CHECK(std::pow(test.schedule.gamma, 49) * 1e-5 == doctest::Approx(1));
  CHECK(test.train.max_steps == 50);
  CHECK(test.eval.every.kind == Period::Kind::never);
  CHECK(test.checkpoint.every.kind == Period::Kind::never);
  CHECK(test.run.dir == "runs/lr");
  CHECK(test.distributed.sharded_update == "auto");  // on would refuse the skipping of steps
}

TEST_CASE("tune tries each number of threads with each size of buckets once and the config's own first") {
  const std::vector<TuneTrial> alone = tune_trials(parse("device: {threads: 3}\n"), 8, 1, 1);
  CHECK(alone.size() == 5);  // 3, then 1 2 4 8
  CHECK(alone.front().threads == 3);
  const std::vector<TuneTrial> ranks = tune_trials(parse(""), 8, 4, 4);
  CHECK(ranks.size() == 2 * 4);  // 2 and 1 threads; 25 is the config's own
  CHECK(ranks.front().threads == 2);
  CHECK(ranks.front().bucket_mb == 25);
}

TEST_CASE("tune leaves the config's own settings where nothing is clearly faster") {
  std::vector<TuneTrial> trials{{1, 25, 0.100}, {2, 25, 0.099}, {2, 4, 0.0995}};
  CHECK(best_trial(trials).threads == 1);
  trials[2].seconds = 0.09;
  CHECK(best_trial(trials).bucket_mb == 4);
  CHECK(tune_table(trials).find("       2          4     90.000     1.11  chosen") != std::string::npos);
}

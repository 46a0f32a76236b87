#include "train/settings/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "dist/replica_check.h"
#include "train/resources.h"
#include "train/stepper.h"

namespace lockstep {
namespace {

constexpr double kClearly = 0.98;
constexpr int64_t kWarmUp = 3;

struct Measured {
  double seconds;  // a step
  bool buckets;    // there are any
};

Measured measure(const Config& config, const MpiEnvironment& environment, int64_t steps) {
  const Resources resources = claim_resources(config, environment);
  RunLog log(config.run.dir, false);
  Trainer trainer(config, *resources.backend, *resources.communicator, log);
  broadcast_model(trainer.network().store(), *resources.communicator);
  Stepper stepper(trainer);
  stepper.run(kWarmUp);
  resources.backend->synchronize();
  std::vector<double> seconds;
  for (int64_t i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    stepper.run(1);
    resources.backend->synchronize();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<int64_t>(seconds.size() / 2));
  double median = seconds[seconds.size() / 2];
  resources.communicator->all_reduce({&median, 1}, ReduceOp::max);
  return {median, !trainer.sharded()};
}

}  // namespace

std::vector<TuneTrial> tune_trials(const Config& config, int allowed_cores, int local_ranks, int ranks) {
  const int64_t most = std::max(1, allowed_cores / std::max(1, local_ranks));
  std::vector<int64_t> threads{config.device.threads > 0 ? config.device.threads : most};
  for (int64_t n = 1; n <= most; n *= 2) threads.push_back(n);
  threads.push_back(most);
  std::vector<double> buckets{config.distributed.bucket_mb};
  if (ranks > 1) buckets.insert(buckets.end(), {1, 4, 25, 1024});
  std::vector<TuneTrial> trials;
  for (const int64_t n : threads) {
    for (const double mb : buckets) {
      const bool there =
          std::ranges::any_of(trials, [&](const TuneTrial& t) { return t.threads == n && t.bucket_mb == mb; });
      if (!there) trials.push_back({n, mb});
    }
  }
  return trials;
}

void measure_trials(const Config& config, const MpiEnvironment& environment, int64_t steps,
                    std::vector<TuneTrial>& trials) {
  if (steps < 3) throw_error("expected at least 3 steps, found {}", steps);
  Config trial = config;
  trial.checkpoint.every = {Period::Kind::never, 0};
  trial.log.trace.clear();
  trial.train.max_steps.reset();
  const double own_mb = trials.front().bucket_mb;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < trials.size(); ++i) {  // of which some may go
      TuneTrial& each = trials[i];
      trial.device.threads = each.threads;
      trial.distributed.bucket_mb = each.bucket_mb;
      const Measured found = measure(trial, environment, steps);
      each.seconds = round == 0 ? found.seconds : std::min(each.seconds, found.seconds);
      if (!found.buckets) std::erase_if(trials, [&](const TuneTrial& t) { return t.bucket_mb != own_mb; });
    }
  }
}

const TuneTrial& best_trial(const std::vector<TuneTrial>& trials) {
  const TuneTrial& fastest = *std::ranges::min_element(trials, {}, &TuneTrial::seconds);
  return fastest.seconds < kClearly * trials.front().seconds ? fastest : trials.front();
}

std::string tune_table(const std::vector<TuneTrial>& trials) {
  const TuneTrial& best = best_trial(trials);
  std::string text = fmt::format("{:>8} {:>10} {:>10} {:>8}\n", "threads", "bucket_mb", "ms/step", "speed");
  for (const TuneTrial& trial : trials)
    text += fmt::format("{:>8} {:>10g} {:>10.3f} {:>8.2f}{}\n", trial.threads, trial.bucket_mb, trial.seconds * 1000,
                        trials.front().seconds / trial.seconds, &trial == &best ? "  chosen" : "");
  return text;
}

}  // namespace lockstep

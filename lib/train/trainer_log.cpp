// The trainer's reporting: which steps are told, what the other ranks contribute to it, evaluation.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "dist/replica_check.h"
#include "train/trainer.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// Local loss and indices of a rank as bytes: loss, then per micro-step its length and rows.
std::vector<int64_t> pack(double loss, const std::vector<std::vector<int64_t>>& indices) {
  std::vector<int64_t> words(1);
  std::memcpy(words.data(), &loss, sizeof loss);
  for (const auto& rows : indices) {
    words.push_back(static_cast<int64_t>(rows.size()));
    words.insert(words.end(), rows.begin(), rows.end());
  }
  return words;
}

RankStep unpack(std::span<const std::byte> bytes) {
  std::vector<int64_t> words(bytes.size() / sizeof(int64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  RankStep step;
  std::memcpy(&step.loss, words.data(), sizeof step.loss);
  for (size_t at = 1; at < words.size();) {
    const auto count = static_cast<size_t>(words[at]);
    step.indices.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(at + 1),
                              words.begin() + static_cast<std::ptrdiff_t>(at + 1 + count));
    at += 1 + count;
  }
  return step;
}

}  // namespace

bool Trainer::log_due() const { return (step_ - 1) % config_.log.every == 0 || step_ == plan_.total_steps(); }

bool Trainer::replica_check_due() const {
  return config_.train.replica_check > 0 && step_ % config_.train.replica_check == 0;
}

bool Trainer::evaluation_due_after_step() const {
  if (!evaluator_) return false;
  const int64_t step = step_ - 1;
  if (step == 0 && config_.eval.at_start) return true;
  if (config_.eval.every.kind != Period::Kind::steps) return false;
  return (step > 0 && step % config_.eval.every.n == 0) || step_ == plan_.total_steps();
}

bool Trainer::evaluation_due_after_epoch(int64_t epoch) const {
  if (!evaluator_ || config_.eval.every.kind != Period::Kind::epochs) return false;
  return (epoch + 1) % config_.eval.every.n == 0 || step_ == plan_.total_steps();
}

void Trainer::log_step(int64_t step_in_epoch) {
  double sums[3] = {window_.loss, window_.weight, nonfinite_->flag()};
  communicator_.all_reduce(sums, ReduceOp::sum);
  const Clock::time_point now = Clock::now();
  const double loss = mean_ ? sums[0] / sums[1] : sums[0];
  StepRecord record{.step = step_ - 1,
                    .epoch = epoch_,
                    .steps_per_epoch = plan_.epoch().steps(),
                    .step_in_epoch = step_in_epoch,
                    .loss = loss,
                    .lr = learning_rate_->last(),
                    .samples = plan_.epoch().step_samples(step_in_epoch),
                    .samples_per_second = static_cast<double>(samples_since_log_) / seconds_between(last_log_, now),
                    .gradient_norm = gradient_norm_};
  if (config_.log.per_rank) record.ranks = gather_rank_steps();
  log_.step(record);
  log_probes("step", true);
  nonfinite_->stop_if_bad(sums[2], sums[0], step_ - 1);
  last_log_ = Clock::now();
  samples_since_log_ = 0;
}

std::vector<RankStep> Trainer::gather_rank_steps() {
  const double loss =
      window_.weight > 0 ? window_.loss / (mean_ ? window_.weight : 1) : std::numeric_limits<double>::quiet_NaN();
  const std::vector<int64_t> mine = pack(loss, window_indices_);
  std::vector<RankStep> steps;
  for (const auto& bytes : communicator_.all_gather(std::as_bytes(std::span(mine)))) steps.push_back(unpack(bytes));
  return steps;
}

void Trainer::evaluate(EpochResult& result) {
  communicator_.activity().evaluation(step_ - 1);
  const Clock::time_point start = Clock::now();
  if (config_.distributed.sync) broadcast_buffers(network_->store(), communicator_);
  const Metrics metrics = evaluator_->run();
  const double seconds = seconds_between(start, Clock::now());
  const Verdict verdict = judge_->judge(metrics, step_ - 1);
  log_.eval({.step = step_ - 1, .epoch = epoch_, .metrics = metrics, .seconds = seconds, .best = verdict.best});
  communicator_.activity().step(step_ - 1);
  learning_rate_->observe_validation(metrics);
  evaluated_ = true;
  stopped_ = verdict.stop;
  result.validation = metrics;
  evaluation_seconds_ += seconds;
  last_log_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Trainer::log_probes(const char* when, bool gradients_too) {
  for (const Probe& probe : probes_) {
    if (!gradients_too && probe.text().starts_with("gradient:")) continue;
    log_.probe(when, std::max<int64_t>(step_ - 1, 0), probe.text(),
               gather_probe(probe, network_->store(), communicator_));
  }
}

}  // namespace lockstep

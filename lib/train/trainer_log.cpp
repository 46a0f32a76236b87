// The trainer's reporting: which steps are told, what the other ranks contribute to it, evaluation.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "train/trainer.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// What a (virtual) rank tells of a step, as words: its local loss, the number of micro-steps, the length and the rows
// of each.
void pack(const LossSums& sums, bool mean, const std::vector<std::vector<int64_t>>& indices,
          std::vector<int64_t>& words) {
  const double loss = sums.weight > 0 ? sums.loss / (mean ? sums.weight : 1) : std::numeric_limits<double>::quiet_NaN();
  words.push_back(std::bit_cast<int64_t>(loss));
  words.push_back(static_cast<int64_t>(indices.size()));
  for (const auto& rows : indices) {
    words.push_back(static_cast<int64_t>(rows.size()));
    words.insert(words.end(), rows.begin(), rows.end());
  }
}

void unpack(std::span<const std::byte> bytes, std::vector<RankStep>& steps) {
  std::vector<int64_t> words(bytes.size() / sizeof(int64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  for (auto word = words.begin(); word != words.end();) {
    RankStep& step = steps.emplace_back();
    step.loss = std::bit_cast<double>(*word++);
    for (int64_t micro_steps = *word++; micro_steps > 0; --micro_steps) {
      const int64_t count = *word++;
      step.indices.emplace_back(word, word + count);
      word += count;
    }
  }
}

// What a checkpoint says of the last validation.
State numbers(const Metrics& metrics, int64_t step) {
  State state;
  state.set("step", step);
  state.set("loss", metrics.loss);
  for (const MetricValue& value : metrics.values) {
    if (value.form == MetricValue::Form::number) state.set(value.name, value.numbers.front());
  }
  return state;
}

}  // namespace

bool Trainer::log_due_after(int64_t steps) const {
  return (steps - 1) % config_.log.every == 0 || steps == total_steps_;
}

bool Trainer::replica_check_due() const {
  return config_.train.replica_check > 0 && step_ % config_.train.replica_check == 0;
}

bool Trainer::evaluation_due_after_step() const {
  if (!evaluator_) return false;
  const int64_t step = step_ - 1;
  if (step == 0 && config_.eval.at_start) return true;
  if (config_.eval.every.kind != Period::Kind::steps) return false;
  return (step > 0 && step % config_.eval.every.n == 0) || step_ == total_steps_;
}

bool Trainer::evaluation_due_after_epoch(int64_t epoch) const {
  if (!evaluator_ || config_.eval.every.kind != Period::Kind::epochs) return false;
  return (epoch + 1) % config_.eval.every.n == 0 || step_ == total_steps_;
}

void Trainer::log_step(int64_t step_in_epoch) {
  const TraceSpan span(trace_row(), TraceKind::phase, "log");
  settle_step();
  const LossSums local = sum_of_pieces(&Piece::window);
  std::vector<double> sums{local.loss, local.weight, nonfinite_->flag()};
  clock_.append_to(sums, communicator_.rank(), communicator_.size());
  communicator_.all_reduce(sums, ReduceOp::sum);
  const Clock::time_point now = Clock::now();
  const double loss = mean_ ? sums[0] / sums[1] : sums[0];
  StepRecord record{.step = step_ - 1,
                    .epoch = epoch_,
                    .steps_per_epoch = first_step_ + epoch_plan_.steps(),
                    .step_in_epoch = first_step_ + step_in_epoch,
                    .loss = loss,
                    .lr = learning_rate_->last(),
                    .samples = epoch_plan_.step_samples(step_in_epoch),
                    .samples_seen = epoch_ * plan_.epoch().consumed() + position_,
                    .samples_per_second = static_cast<double>(samples_since_log_) / seconds_between(last_log_, now),
                    .gradient_norm = norm_clip_ ? norm_clip_->norm() : -1,
                    .time = clock_.take_from(sums, communicator_.size())};
  if (loss_scaling_->active()) {
    record.loss_scale = loss_scaling_->factor();
    record.skipped = loss_scaling_->skipped();
  }
  if (noise_scale_ && log_due())
    record.noise = noise_scale_->last();  // of this step, not of one long before an early stop
  if (config_.log.per_rank) record.ranks = gather_rank_steps();
  log_.step(record);
  log_probes("step", true);
  nonfinite_->stop_if_bad(sums[2], sums[0], step_ - 1);
  last_log_ = Clock::now();
  samples_since_log_ = 0;
}

std::vector<RankStep> Trainer::gather_rank_steps() {
  std::vector<int64_t> mine;
  for (const Piece& piece : pieces_) pack(piece.window, mean_, piece.indices, mine);
  std::vector<RankStep> steps;
  for (const auto& bytes : communicator_.all_gather(std::as_bytes(std::span(mine)))) unpack(bytes, steps);
  return steps;
}

void Trainer::evaluate(EpochResult& result) {
  const TraceSpan span(trace_row(), TraceKind::phase, "evaluation");
  settle_step();
  communicator_.activity().evaluation(step_ - 1);
  const Clock::time_point start = Clock::now();
  if (config_.distributed.sync) statistics_->agree();
  const AveragedWeights averaged(average_.get(), network_->store());
  fault_.at_evaluation(step_);
  if (stop_) stop_->change_pace();
  const std::optional<Metrics> found = evaluator_->run([this] { return asked_to_end(); });
  if (stop_) stop_->change_pace();
  evaluation_pending_ = !found;
  if (!found) return;
  const Metrics& metrics = *found;
  const double seconds = seconds_between(start, Clock::now());
  const Verdict verdict = judge_->judge(metrics, step_ - 1);
  log_.eval({.step = step_ - 1, .epoch = epoch_, .metrics = metrics, .seconds = seconds, .best = verdict.best});
  communicator_.activity().step(step_ - 1);
  learning_rate_->observe_validation(metrics);
  evaluated_ = true;
  best_pending_ = best_pending_ || verdict.best;
  stopped_ = verdict.stop;
  validation_ = numbers(metrics, step_ - 1);
  result.validation = metrics;
  evaluation_seconds_ += seconds;
  last_log_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Trainer::log_probes(const char* when, bool gradients_too) {
  for (const Probe& probe : probes_) {
    if (!gradients_too && watches_gradient(probe.text())) continue;
    log_.probe(when, std::max<int64_t>(step_ - 1, 0), probe.text(),
               gather_probe(probe, network_->store(), communicator_));
  }
}

}  // namespace lockstep

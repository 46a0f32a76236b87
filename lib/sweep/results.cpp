#include "sweep/results.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "sweep/agreement.h"
#include "sweep/scaling.h"

namespace lockstep {
namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

bool is_batch_key(const std::string& key) {
  return key == "distributed.world_size" || key == "train.batch_size" || key == "train.accumulate" ||
         key == "train.global_batch_size";
}

// The parameters beside ranks and batch: what must be equal where trials are compared.
std::string others(const Trial& trial) {
  std::string text;
  for (const Assignment& each : trial.parameters)
    if (!is_batch_key(each.key)) text += each.key + "=" + each.value + "\n";
  return text;
}

std::string state_text(TrialOutcome::State state) {
  switch (state) {
    case TrialOutcome::State::done: return "done";
    case TrialOutcome::State::failed: return "failed";
    case TrialOutcome::State::stopped: return "stopped";
    case TrialOutcome::State::queued: return "queued";
    case TrialOutcome::State::running: return "running";
    case TrialOutcome::State::missing: break;
  }
  return "missing";
}

std::vector<ScalingPoint> scaling_points(const std::vector<Trial>& trials, const std::vector<TrialOutcome>& outcomes) {
  std::vector<ScalingPoint> points;
  for (size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    const bool has_rate = outcomes[i].run && outcomes[i].state != TrialOutcome::State::failed;
    points.push_back({.world_size = trial.world_size,
                      .batch_size = trial.batch_size,
                      .accumulate = trial.accumulate,
                      .global_batch = trial.global_batch,
                      .others = others(trial),
                      .throughput = has_rate ? throughput(*outcomes[i].run) : std::nan("")});
  }
  return points;
}

std::vector<LossCurve> loss_curves(const std::vector<Trial>& trials, const std::vector<TrialOutcome>& outcomes) {
  std::vector<LossCurve> curves;
  for (size_t i = 0; i < trials.size(); ++i) {
    LossCurve& curve = curves.emplace_back(LossCurve{trials[i].global_batch, others(trials[i]), {}});
    if (outcomes[i].run) {
      for (const StepLine& line : outcomes[i].run->steps)
        if (line.samples_seen) curve.loss.emplace_back(*line.samples_seen, line.loss);
    }
  }
  return curves;
}

// Shares of the step, mean over the ranks.
std::array<double, kStepPhases.size()> phase_shares(const RunData& run) {
  std::array<double, kStepPhases.size()> shares{};
  double all = 0;
  for (const auto& rank : mean_times(run)) {
    for (size_t phase = 0; phase < shares.size(); ++phase) shares[phase] += rank[phase], all += rank[phase];
  }
  for (double& share : shares) share /= all;  // NaN without any
  return shares;
}

void add_scaling(std::vector<json>& row, const ScalingPoint& point, const std::vector<ScalingPoint>& points,
                 const ScalingBase& base) {
  for (const std::optional<size_t>& one : {base.strong, base.weak}) {
    const double on_one = one ? points[*one].throughput : std::nan("");
    row.push_back(number(speedup(point.throughput, on_one)));
    row.push_back(number(efficiency(point.throughput, on_one, point.world_size)));
  }
}

// The names of all final metrics, over all trials.
std::set<std::string> metric_names_of(const std::vector<TrialOutcome>& outcomes) {
  std::set<std::string> names;
  for (const TrialOutcome& outcome : outcomes) {
    if (!outcome.run || outcome.run->evals.empty()) continue;
    for (const auto& [name, value] : outcome.run->evals.back().values) names.insert(name);
  }
  return names;
}

void add_outcome(std::vector<json>& row, const TrialOutcome& outcome, const std::set<std::string>& metrics) {
  const RunData empty;
  const RunData& run = outcome.run ? *outcome.run : empty;
  for (const double share : phase_shares(run)) row.push_back(number(share));
  row.push_back(run.steps.empty() ? json(nullptr) : number(run.steps.back().loss));
  for (const std::string& name : metrics) {
    const auto found =
        run.evals.empty() ? std::map<std::string, double>::const_iterator{} : run.evals.back().values.find(name);
    const bool has = !run.evals.empty() && found != run.evals.back().values.end();
    row.push_back(has ? number(found->second) : json(nullptr));
  }
  row.push_back(run.ended ? number(run.seconds) : json(nullptr));
  row.emplace_back(outcome.problem);
}

std::string agreement_note(const Agreement& agreement, const std::vector<Trial>& trials) {
  const std::string group = fmt::format("global batch {}: {} trials", agreement.global_batch, agreement.curves.size());
  if (agreement.points == 0) return group + ", whose logs have no numbers of samples in common";
  return fmt::format("{}, largest difference of the training loss {:.3g} at {} samples ({} over {}; {} points)", group,
                     agreement.difference, agreement.at_samples, trials[agreement.high].name,
                     trials[agreement.low].name, agreement.points);
}

}  // namespace

bool is_under_way(const TrialOutcome& outcome) {
  return outcome.state == TrialOutcome::State::queued || outcome.state == TrialOutcome::State::running;
}

SweepResults sweep_results(const std::vector<Trial>& trials, const std::vector<TrialOutcome>& outcomes) {
  SweepResults results;
  results.columns = {"trial",
                     "state",
                     "world_size",
                     "batch_size",
                     "accumulate",
                     "global_batch",
                     "samples_per_second",
                     "strong_speedup",
                     "strong_efficiency",
                     "weak_speedup",
                     "weak_efficiency"};
  for (const std::string_view phase : kStepPhases) results.columns.emplace_back(phase);
  results.columns.emplace_back("train_loss");
  const std::set<std::string> metrics = metric_names_of(outcomes);
  for (const std::string& name : metrics) results.columns.push_back("val_" + name);
  results.columns.insert(results.columns.end(), {"seconds", "problem"});

  const std::vector<ScalingPoint> points = scaling_points(trials, outcomes);
  const std::vector<ScalingBase> bases = scaling_bases(points);
  bool one_rank = false, more = false;
  for (size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    std::vector<json>& row = results.rows.emplace_back();
    row = {trial.name,         state_text(outcomes[i].state), trial.world_size, trial.batch_size, trial.accumulate,
           trial.global_batch, number(points[i].throughput)};
    add_scaling(row, points[i], points, bases[i]);
    add_outcome(row, outcomes[i], metrics);
    results.failed.push_back(outcomes[i].state != TrialOutcome::State::done && !is_under_way(outcomes[i]));
    one_rank = one_rank || trial.world_size == 1;
    more = more || trial.world_size > 1;
  }
  if (more && !one_rank)
    results.notes.emplace_back("no trial on one rank: speed-up and efficiency have nothing to compare with");
  for (const Agreement& agreement : agreements(loss_curves(trials, outcomes)))
    results.notes.push_back(agreement_note(agreement, trials));
  return results;
}

}  // namespace lockstep

#include "train/validation_judge.h"

#include <cstddef>

#include "train/metrics/table.h"

namespace lockstep {
namespace {

constexpr std::byte kBest{1}, kStop{2};

// Without checkpoint.best the best model is the one early stopping looks for, or else the one of the smallest loss.
BestModel best_model(const Config& config) {
  if (config.checkpoint.best) return {*config.checkpoint.best, std::nullopt};
  if (config.train.early_stopping) return {config.train.early_stopping->metric, config.train.early_stopping->mode};
  return {"val.loss", std::nullopt};
}

// `watched` is "val.NAME"; the constructor has seen that it is computed.
double number(const Metrics& metrics, const std::string& watched) {
  return metrics.number(watched.substr(std::string_view("val.").size())).value();
}

}  // namespace

ValidationJudge::ValidationJudge(const Config& config, const std::vector<std::unique_ptr<Metric>>& metrics,
                                 Communicator& communicator)
    : communicator_(communicator), best_(best_model(config)) {
  if (config.schedule.kind == "plateau") check_watched("schedule.metric", config.schedule.metric, metrics);
  if (config.train.early_stopping) {
    stopping_metric_ = config.train.early_stopping->metric;
    check_watched("train.early_stopping.metric", stopping_metric_, metrics);
    stopping_.emplace(*config.train.early_stopping);
  }
  check_watched("checkpoint.best", best_.best().metric, metrics);
}

State ValidationJudge::state() const {
  State state;
  state.set("metric", best().metric);
  state.set("value", best().value);
  state.set("step", best().step);
  if (stopping_) state.add("stopping", stopping_->state());
  return state;
}

void ValidationJudge::restore(const State& state) {
  if (state.text("metric") == best().metric) best_.set(state.real("value"), state.integer("step"));
  if (const State part = state.part("stopping"); stopping_ && !part.values().empty()) stopping_->restore(part);
}

Verdict ValidationJudge::judge(const Metrics& metrics, int64_t step) {
  const double candidate = number(metrics, best_.best().metric);
  std::byte word{0};
  if (best_.better(candidate)) word |= kBest;
  if (stopping_ && stopping_->observe(number(metrics, stopping_metric_))) word |= kStop;
  communicator_.broadcast({&word, 1}, 0);
  const Verdict verdict{.best = (word & kBest) != std::byte{0}, .stop = (word & kStop) != std::byte{0}};
  if (verdict.best) best_.set(candidate, step);
  return verdict;
}

}  // namespace lockstep

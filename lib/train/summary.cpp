#include "train/summary.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

// What the validations came to; nothing without one.
std::string best_line(const RunResult& result) {
  if (!result.best) return "";
  const BestMetric& best = *result.best;
  const std::string stopped = result.stopped_early ? fmt::format("stopped early after {} steps, ", result.steps) : "";
  if (best.step < 0) return fmt::format("{}no validation gave a number for {}\n", stopped, best.metric);
  return fmt::format("{}best {} {:.6g} at step {}\n", stopped, best.metric, best.value, best.step);
}

}  // namespace

std::string summary_table(const RunResult& result) {
  std::string table = fmt::format("{:>5}  {:>9}  {:>10}  {:>10}  {:>9}  {:>10}\n", "epoch", "samples", "train loss",
                                  "val loss", "accuracy", "samples/s");
  for (const EpochResult& epoch : result.epochs) {
    std::string loss = "-", accuracy = "-";
    if (epoch.validation) {
      loss = fmt::format("{:.4f}", epoch.validation->loss);
      if (const auto share = epoch.validation->number("accuracy")) accuracy = fmt::format("{:.2f} %", 100 * *share);
    }
    table += fmt::format("{:>5}  {:>9}  {:>10.4f}  {:>10}  {:>9}  {:>10.0f}\n", epoch.epoch + 1, epoch.samples,
                         epoch.train_loss, loss, accuracy, static_cast<double>(epoch.samples) / epoch.seconds);
  }
  table += best_line(result);
  table.pop_back();
  return table;
}

}  // namespace lockstep

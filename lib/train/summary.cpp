#include "train/summary.h"

#include <fmt/format.h>

namespace lockstep {

std::string summary_table(const RunResult& result) {
  std::string table = fmt::format("{:>5}  {:>9}  {:>10}  {:>10}  {:>9}  {:>10}\n", "epoch", "samples", "train loss",
                                  "val loss", "accuracy", "samples/s");
  for (const EpochResult& epoch : result.epochs) {
    std::string loss = "-", accuracy = "-";
    if (epoch.validation) {
      loss = fmt::format("{:.4f}", epoch.validation->loss);
      if (epoch.validation->correct >= 0) accuracy = fmt::format("{:.2f} %", 100 * epoch.validation->accuracy());
    }
    table += fmt::format("{:>5}  {:>9}  {:>10.4f}  {:>10}  {:>9}  {:>10.0f}\n", epoch.epoch + 1, epoch.samples,
                         epoch.train_loss, loss, accuracy, static_cast<double>(epoch.samples) / epoch.seconds);
  }
  table.pop_back();
  return table;
}

}  // namespace lockstep

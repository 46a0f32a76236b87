// What follows from a validation, decided once for all ranks: is this the best model so far, and does the run end here.
// Decided from reduced values only, and by rank 0: no rank can save or stop on its own.
#pragma once

#include <optional>
#include <string>

#include "comm/communicator.h"
#include "train/best_model.h"
#include "train/config.h"
#include "train/early_stopping.h"
#include "train/evaluator.h"

namespace lockstep {

struct Verdict {
  bool best = false;  // better than every validation before: the model to keep
  bool stop = false;  // train.early_stopping has run out of patience
};

class ValidationJudge {
 public:
  // `metrics`: what the evaluator computes. Throws Error for a watched metric that is not among them.
  ValidationJudge(const Config& config, const std::vector<std::unique_ptr<Metric>>& metrics,
                  Communicator& communicator);
  // Collective; the same verdict on every rank.
  Verdict judge(const Metrics& metrics, int64_t step);
  const BestMetric& best() const { return best_.best(); }
  State state() const;
  // A best value of another metric than the one looked for now is forgotten.
  void restore(const State& state);

 private:
  Communicator& communicator_;
  BestModel best_;
  std::string stopping_metric_;
  std::optional<EarlyStopping> stopping_;
};

}  // namespace lockstep

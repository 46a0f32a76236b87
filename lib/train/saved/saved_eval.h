// A checkpoint evaluated again: the numbers that the run logged at it, to the bit, on any number of ranks, or those of
// other data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/evaluator.h"
#include "train/saved/saved_run.h"

namespace lockstep {

// config.data.val, or `files` (input_files.h) in its place. Error: neither; data that every rank has for itself on
// another number of ranks than the run had.
std::unique_ptr<Dataset> evaluation_data(const SavedRun& run, const std::vector<std::string>& files,
                                         Communicator& communicator);

// The samples go through the network in the batches of the run's own evaluation, whose (virtual) ranks are dealt to
// those there are now. Metrics are eval.metrics and, for classes, the confusion matrix. Collective.
Metrics evaluate(const SavedRun& run, const Dataset& data, Network& network, Backend& backend,
                 Communicator& communicator);

// What the run itself logged at this checkpoint; empty: no validation belongs to its step.
struct LoggedValue {
  std::string name;  // "loss"
  double value = 0;
};
std::vector<LoggedValue> logged_values(const SavedRun& run);

// For people: every number with all its digits, what the run logged beside it, the confusion matrix. logged: as above.
std::string evaluation_text(const Metrics& metrics, const std::vector<LoggedValue>& logged);

}  // namespace lockstep

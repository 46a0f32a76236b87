// What a checkpoint holds: position, metrics, versions, files, tensors.
#pragma once

#include <string>

#include "data/dataset.h"
#include "train/saved/saved_run.h"

namespace lockstep {

// run: read on this process. tensors: every tensor of every file too, not only their numbers.
std::string checkpoint_text(const SavedRun& run, bool tensors);

// Of a run's data, what its state says: enough for the memory estimate, without the data sets themselves.
Dataset::Info training_data_info(const SavedRun& run);

}  // namespace lockstep

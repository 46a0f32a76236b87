// From settings to a data set: the table of kinds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "data/dataset.h"
#include "data/settings.h"

namespace lockstep {

// Reads or makes the data set, then takes its subset first, count. `rank` matters with seed_per_rank only. Throws Error
// with settings.where in front: unknown kind, missing keys, damaged files, an empty set, targets the loss can't use.
std::unique_ptr<Dataset> make_dataset(const DatasetSettings& settings, int rank);

// As above, but a synthetic set goes on drawing from `generator`, as in a script that seeds once, makes its training
// set, its test set and then its model.
std::unique_ptr<Dataset> make_dataset(const DatasetSettings& settings, int rank, Generator& generator);

std::vector<std::string> dataset_kinds();

}  // namespace lockstep

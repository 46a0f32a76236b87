// A CSV table as a data set: chosen columns are the features of a sample, one column is its target.
#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/settings.h"

namespace lockstep {

// settings.file, features, target, header, targets, classes. Targets are class labels when the loss wants labels, when
// classes is given, or when every target is written as an integer; else they are values. Throws Error with
// file:line:column for a cell that is no number, a row of another length or a label out of range
// (nan and inf are numbers; an empty cell is not).
std::unique_ptr<Dataset> make_csv(const DatasetSettings& settings);

}  // namespace lockstep

// Data sets made from a formula, drawn like the PyTorch scripts they stand for draw them, to the bit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "data/dataset.h"
#include "data/settings.h"

namespace lockstep {

// settings.name picks one:
//   toy_train, toy_test   5 and 2 points of 2 classes; with augment k: k copies of them, each + 0.1 * randn
//   toy16                 x = randn(16, 2), label x0 > 0
//   teacher               x = randn(samples, features), label argmax(x @ randn(features, classes)); shape: [features]
//   normal_regression     x = randn(samples, shape), y = randn(samples, target_width)
//   random                x = randn(samples, shape), label randint(0, classes)
//   identity              x = row number, y = values repeated (no values: the row number)
//   constant              x = 1, y = values repeated: loss (wx - y)^2 then has the gradient w - y
// Draws go on from `generator`. Throws Error for an unknown name or sizes that make no sense for it.
std::unique_ptr<Dataset> make_synthetic(const DatasetSettings& settings, Generator& generator);

// The same from torch.manual_seed(seed), or seed + rank with seed_per_rank. An augmented toy_test comes after its
// toy_train in the script, so the draws of that are skipped first.
std::unique_ptr<Dataset> make_synthetic(const DatasetSettings& settings, int rank);

// Engine words an augmented toy set takes from the script's generator (0 for all others, which the scripts draw from
// generators of their own). A script that goes on to build its model has discarded the words of its data sets before.
uint64_t script_words(const DatasetSettings& settings);

std::vector<std::string> synthetic_names();

}  // namespace lockstep

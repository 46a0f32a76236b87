// The two small sets of the articles' first examples.
#pragma once

#include <memory>

#include "core/rng.h"
#include "data/dataset.h"
#include "data/settings.h"

namespace lockstep {

std::unique_ptr<Dataset> make_toy_train(const DatasetSettings& settings, Generator& generator);
std::unique_ptr<Dataset> make_toy_test(const DatasetSettings& settings, Generator& generator);
std::unique_ptr<Dataset> make_toy16(const DatasetSettings& settings, Generator& generator);

void skip_toy_train(const DatasetSettings& settings, Generator& generator);  // draws what make_toy_train would draw

}  // namespace lockstep

// A batch norm needs two values per channel: one has no variance. Which layers and which micro-batches of a run come to
// that is known from the plan of the data and the shapes alone, before anything is bound or trained.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"
#include "data/data_plan.h"
#include "nn/model_spec.h"

namespace lockstep {

struct BatchNormSite {
  std::string layer;              // "bn1"
  int64_t values_per_sample = 1;  // of a channel: height times width
};

// The network's batch norms in its order. Throws Error for what build_layers rejects.
std::vector<BatchNormSite> batch_norm_sites(const ModelSpec& model, const Shape& sample);

// The first micro-batch of the run that leaves a batch norm a single value per channel, as a text that names layer,
// step (from 0) and rank and says what to change; "" where there is none. across_ranks: statistics are of all ranks'
// samples of a micro-step (batch_norm: sync), else of each rank's own. A function of its arguments: the same on all
// ranks.
std::string one_value_text(const DataPlan& plan, std::span<const BatchNormSite> sites, bool across_ranks);

}  // namespace lockstep

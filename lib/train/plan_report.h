// What `lockstep plan` prints: the counts of a run for several world sizes side by side, without starting any rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/data_plan.h"
#include "data/epoch_order.h"

namespace lockstep {

// A fixed-width table with one line per world size (`base` with that world_size; just its own with base.own), then for
// each of them the arithmetic of the global batch, a WARNING where ranks get no samples, and the first rows that each
// rank reads in epochs 0 to 2 (8 rows, 8 ranks at most). Error: what DataPlan rejects. Makes up to three lists of
// base.samples.
std::string plan_report(const DataPlanSpec& base, std::span<const int64_t> world_sizes,
                        const SamplerSettings& settings);

// "global batch = batch_size 2 x world_size 4 x accumulate 1 = 8"
std::string global_batch_line(const DataPlanSpec& spec);

// Why (some) ranks have nothing to train on, "" if all have: "every loader is empty: 5 samples, 8 ranks, batch 2,
// drop_last: nothing to train". The trainer refuses to start with the text of the first kind.
std::string empty_loader_text(const DataPlan& plan);

}  // namespace lockstep

// A copy into another layout or type that the graph puts before layers that need one.
#pragma once

#include "nn/layer.h"

namespace lockstep {

// sample: output shape of one sample when written canonically (a flattened input keeps its 4-D description otherwise).
LayerPtr make_reorder(const Shape& sample, int64_t channel_block, DType type);

}  // namespace lockstep

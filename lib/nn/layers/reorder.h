// A layer the graph inserts where one side computes with blocked channels and the other cannot.
#pragma once

#include "nn/layer.h"

namespace lockstep {

// Copies its input to the canonical layout of `sample` (a flattened tensor keeps its 4-d form until here); backward
// copies the gradient back.
LayerPtr make_reorder(const Shape& sample);

}  // namespace lockstep

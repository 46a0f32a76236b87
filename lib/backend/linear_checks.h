// What can be planned of a fully connected layer, for every backend.
#pragma once

#include "backend/specs.h"

namespace lockstep {

// Throws Error for a specification that no backend can plan.
void check_linear(const LinearSpec& spec);

}  // namespace lockstep

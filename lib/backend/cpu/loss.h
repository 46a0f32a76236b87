// Cross-entropy on the CPU has a file of its own: cross_entropy.cpp.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/loss_checks.h"

namespace lockstep {

std::unique_ptr<LossPlan> make_cpu_cross_entropy(const LossSpec& spec, int64_t batch, int64_t classes);

}  // namespace lockstep

// The findings about GPUs: findings.h collects them.
#pragma once

#include "train/doctor/findings.h"

namespace lockstep {

void gpu_findings(const RunFacts& facts, std::vector<Finding>& out);

}  // namespace lockstep

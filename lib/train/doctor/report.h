// Facts and findings as text for people.
#pragma once

#include <string>
#include <vector>

#include "train/doctor/findings.h"

namespace lockstep {

std::string doctor_report(const RunFacts& facts, const std::vector<Finding>& findings);

}  // namespace lockstep

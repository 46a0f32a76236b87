// The report's pictures as files, for those who have no browser at hand.
#pragma once

#include <string>
#include <vector>

#include "report/run_data.h"

namespace lockstep {

// Writes <name>.svg and <name>.png into `directory` (made where absent) for every picture the runs have numbers for;
// returns the PNG files. rsvg-convert makes the PNGs. Error: it is missing or fails, or a file can't be written.
std::vector<std::string> write_pictures(const std::vector<RunData>& runs, const std::string& directory);

}  // namespace lockstep

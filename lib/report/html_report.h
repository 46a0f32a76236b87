// The report of runs as one HTML file that needs no network: the page of page/, the chart library and the runs' data.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/run_data.h"

namespace lockstep {

// sweep: null, or what the section about a sweep shows: {"columns": [names], "rows": [[text or number, ...], ...],
// "failed": [true where the row's trial failed, ...], "notes": [texts]}.
std::string html_report(const std::vector<RunData>& runs, const nlohmann::json& sweep);

// JSON as it may stand in a <script> element: no text of a file can end the element or begin another.
std::string json_for_script(const nlohmann::json& value);

}  // namespace lockstep

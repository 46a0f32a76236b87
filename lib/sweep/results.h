// What came of a sweep: one row per trial, as CSV, JSON and Markdown and as the report's section.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/run_data.h"
#include "sweep/trials.h"

namespace lockstep {

struct TrialOutcome {
  enum class State { done, failed, stopped, missing, queued, running };
  State state = State::missing;
  std::string problem;         // why it is not done, or where it is on its way
  std::optional<RunData> run;  // as far as it came
};

bool is_under_way(const TrialOutcome& outcome);  // queued or running

struct SweepResults {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::json>> rows;  // text, number or null
  std::vector<bool> failed;                       // by row: neither done nor on its way
  std::vector<std::string> notes;                 // on the scaling, and where equal global batches differ
};

SweepResults sweep_results(const std::vector<Trial>& trials, const std::vector<TrialOutcome>& outcomes);

std::string results_csv(const SweepResults& results);         // RFC 4180, numbers in full
std::string results_json(const SweepResults& results);        // {"trials": [{column: value}], "notes": [...]}
std::string results_markdown(const SweepResults& results);    // numbers to five digits
std::string results_console(const SweepResults& results);     // the main columns, aligned
nlohmann::json results_section(const SweepResults& results);  // for html_report

}  // namespace lockstep

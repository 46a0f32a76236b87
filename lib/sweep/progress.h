// How the trials of a sweep stand while it is under way: from Slurm's answers, locks and the runs' own logs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sweep/results.h"

namespace lockstep {

// Every trial as it is at this moment; those that run have their curves so far. Starts and changes nothing. tell() gets
// a line where Slurm should be asked and does not answer: then the folders alone count.
// Error: a trial's folder holds a run of another config.
std::vector<TrialOutcome> outcomes_now(const std::vector<Trial>& trials,
                                       const std::function<void(const std::string&)>& tell);

// A trial that is not done and has a job: queued, running, or as it ended. states: of states_of_jobs.
void add_state_of_job(const Trial& trial, const std::string& job, const std::map<std::string, std::string>& states,
                      TrialOutcome& outcome);

}  // namespace lockstep

// The Slurm jobs of a sweep's trials: which they are, and what Slurm says of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sweep/trials.h"

namespace lockstep {

// Where sbatch's own output goes, with the job's number; for a trial of a job array it names the array's folder and the
// task instead: "array-1 3".
std::string submit_output(const Trial& trial);
std::string submit_output(const std::string& array_folder);

// The job that was submitted last for the trial: "12", or "12_3" for a task of an array; empty: none.
std::string submitted_job(const Trial& trial);

// "RUNNING", "PENDING", "FAILED", ... of those jobs that Slurm still knows: its queue, and its accounting where there
// is one. Error: squeue is missing or does not answer.
std::map<std::string, std::string> states_of_jobs(const std::vector<std::string>& jobs);

// What squeue and sacct print, as states by job. separator: between the two columns.
std::map<std::string, std::string> parse_job_states(const std::string& output, char separator);

enum class JobPhase { queued, running, ended };
JobPhase phase_of(const std::string& state);

void cancel_jobs(const std::vector<std::string>& jobs);

}  // namespace lockstep

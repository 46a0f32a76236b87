// The Slurm job this process is part of: when it ends, and putting it back into the queue.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

// Seconds until Slurm ends the job: from SLURM_JOB_END_TIME where Slurm sets it, else by asking squeue once. nullopt:
// no Slurm job, or one without a limit. Error: there is a job, but its limit can't be found out.
std::optional<double> slurm_seconds_left();

// squeue's %L, "[[days-]hours:]minutes:seconds", in seconds; nullopt: no limit (UNLIMITED, NOT_SET). Error: anything
// else.
std::optional<double> parse_slurm_time_left(const std::string& text);

// False for SIGTERM: that is scancel's, and a job that was cancelled must not come back; where Slurm preempts or
// requeues a job by itself, it sends SIGTERM too and puts the job back without being asked. reason:
// StopRequest::poll()'s.
bool may_requeue(const std::string& reason);

// scontrol requeue of this job (of a job array, of this task). Slurm then ends the job's processes and starts the batch
// file anew, which must resume. Error: no Slurm job, scontrol is missing, fails or doesn't answer, with what it said.
void requeue_job();

}  // namespace lockstep

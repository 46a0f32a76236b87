// The folder of a trial: made exclusively, and what its files say of how the trial went.
#pragma once

#include <optional>
#include <string>

#include "sweep/results.h"
#include "sweep/trials.h"

namespace lockstep {

// Error: it is there already, or cannot be made.
void make_trial_folder(const Trial& trial);
bool trial_folder_exists(const Trial& trial);

// The reason that a failed trial's output ends with: the last line of `lockstep: ...`, else the last one.
std::string reason_in_output(const Trial& trial);

// The Slurm job that was submitted last for the trial; empty: none.
std::string submitted_job(const Trial& trial);
// "RUNNING", "PENDING", ...; empty: Slurm knows it no more. Error: squeue is missing or does not answer.
std::string state_of_job(const std::string& job);
void cancel_job(const std::string& job);

// Where sbatch's own output goes.
std::string submit_output(const Trial& trial);

// Holds a folder for one sweep at a time, as long as it lives. Makes the folder. Error: another process has it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace lockstep

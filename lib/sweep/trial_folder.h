// The folder of a trial: made exclusively, and what its files say of how the trial went.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/results.h"
#include "sweep/trials.h"

namespace lockstep {

// Error: it is there already, or cannot be made.
void make_trial_folder(const Trial& trial);
bool trial_folder_exists(const Trial& trial);

// The reason that a failed trial's output ends with: the last line of `lockstep: ...`, else the last one.
std::string reason_in_output(const Trial& trial);

// The last 64 KiB of a text file, in lines without empty ones; none where it cannot be read.
std::vector<std::string> last_lines(const std::string& path);

// Whether a command of a process pool, of this process or another one, is at work on the trial: it holds launch.log.
bool is_run_here(const Trial& trial);

// Whether some sweep holds the folder.
bool is_at_work_in(const std::string& folder);

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

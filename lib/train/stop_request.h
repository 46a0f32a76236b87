// What asks a run to end early: a signal on any one rank, run.max_time, Slurm's time limit. All ranks learn of it at
// the same poll, so that all of them stop, and save, after the same step.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "train/config.h"

namespace lockstep {

struct StopSources {
  std::function<double()> now;              // seconds, of this rank's clock
  std::function<int()> signal = {};         // the signal that this rank got, 0: none yet; null: none is watched
  std::optional<double> max_time_at = {};   // of now(); that of rank 0 counts
  std::optional<double> slurm_end_at = {};  // the same
};

// Made for a config. SIGTERM and the like are caught as long as the result (or a copy) lives. Asks Slurm on rank 0, and
// warns where it doesn't answer. program_start: what run.max_time counts from.
StopSources stop_sources(const RunConfig& run, int rank, std::chrono::steady_clock::time_point program_start);

class StopRequest {
 public:
  // Collective.
  StopRequest(StopSources sources, Communicator& communicator);

  // Why the run shall end: "SIGTERM on rank 1", "max_time", "Slurm's time limit"; the same on all ranks from the same
  // call on. Collective: all ranks make the same calls, none while sums are under way. Most calls only count. At every
  // n-th the ranks agree on the reason and on the next n, from the measured time of calls and of agreeing: a reaction
  // takes one call where those take a millisecond, and not much longer than that where they are shorter (50 ms at the
  // most, where agreeing is so slow that it would take a hundredth of the time). Allocates nothing before there is a
  // reason.
  std::optional<std::string> poll() {
    if (calls_left_ == 0 || --calls_left_ > 0) return reason_;
    return agree();
  }
  // Calls may take another time from here on (an evaluation begins or ends): the next one agrees. On all ranks alike.
  void change_pace();

  int64_t interval() const { return interval_; }  // calls from one agreement to the next; 0: nothing can ask for an end

 private:
  std::optional<std::string> agree();
  double code(double now) const;
  int64_t next_interval(double seconds_per_call, double cost) const;

  StopSources sources_;
  Communicator& communicator_;
  int64_t interval_ = 1, calls_left_ = 1;  // calls_left_ 0: nothing to agree on any more
  double last_ = -1, cost_ = 0;            // the end and the seconds of this rank's last agreement
  std::optional<std::string> reason_;
};

}  // namespace lockstep

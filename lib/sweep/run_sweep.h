// Runs the trials of a sweep that are missing, each in a folder of its own, and says what came of all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sweep/commands.h"
#include "sweep/results.h"
#include "sweep/sweep_file.h"
#include "sweep/trials.h"

namespace lockstep {

struct SweepOptions {
  std::string program;    // this executable
  bool resume = false;    // folders may exist: what they lack is run
  bool submit = false;    // by sbatch
  bool array = false;     // then trials that ask for the same resources as one job array
  bool wait = true;       // then until the jobs have ended
  int stopped_code = 75;  // exit code of a run that was asked to end
};

SubmitOptions submit_options(const SweepSettings& sweep, const SweepOptions& options);

// What the folder of a trial holds. Error: it is of another config, device.threads aside.
TrialOutcome look_at(const Trial& trial);

// One at a time or sweep.jobs side by side, each on CPUs of its own; goes on after one that failed. A signal to this
// process ends those that run, and starts no more. tell() gets a line for every start and end.
// Error, before anything is started: a trial's folder exists (without resume), another sweep is at work in sweep.dir.
struct SweepEnd {
  std::vector<TrialOutcome> outcomes;  // by trial
  bool asked_to_stop = false;
};
SweepEnd run_sweep(const SweepSettings& sweep, const std::vector<Trial>& trials, const SweepOptions& options,
                   const std::function<void(const std::string&)>& tell);

}  // namespace lockstep

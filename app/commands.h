// The subcommands: each adds its options to the parser and hands back what to run when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace lockstep::app {

// kStoppedEarly: the run was asked to end (a signal, run.max_time, Slurm's time limit), has saved its state, and goes
// on with --resume auto: EX_TEMPFAIL of sysexits.h, "try again later".
enum ExitCode : int { kSuccess = 0, kRunFailed = 1, kWrongInput = 2, kStoppedEarly = 75 };

// Runs the command; returns the exit code, throws Error for wrong input.
using Command = std::function<int()>;

Command add_train(CLI::App& parent);
Command add_run(CLI::App& parent);
Command add_plan(CLI::App& parent);
Command add_config(CLI::App& parent);
Command add_plot(CLI::App& parent);
Command add_bench(CLI::App& parent);
Command add_doctor(CLI::App& parent);
Command add_eval(CLI::App& parent);
Command add_predict(CLI::App& parent);
Command add_export(CLI::App& parent);
Command add_inspect(CLI::App& parent);
Command add_compare(CLI::App& parent);
Command add_report(CLI::App& parent);
Command add_sweep(CLI::App& parent);
Command add_top(CLI::App& parent);
Command add_lr_find(CLI::App& parent);
Command add_tune(CLI::App& parent);
Command add_describe(CLI::App& parent);

std::string version_text();  // --version: what this executable was made of and finds here

}  // namespace lockstep::app

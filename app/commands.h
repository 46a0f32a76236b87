// The subcommands: each adds its options to the parser and hands back what to run when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace lockstep::app {

enum ExitCode : int { kSuccess = 0, kRunFailed = 1, kWrongInput = 2 };

// Runs the command; returns the exit code, throws Error for wrong input.
using Command = std::function<int()>;

Command add_train(CLI::App& parent);
Command add_plan(CLI::App& parent);
Command add_config(CLI::App& parent);
Command add_plot(CLI::App& parent);
Command add_bench(CLI::App& parent);
Command add_doctor(CLI::App& parent);

}  // namespace lockstep::app

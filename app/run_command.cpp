// lockstep run -- COMMAND: starts a training command and starts it again, from its last checkpoint, when it fails.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "core/stop_signals.h"
#include "core/supervisor.h"

namespace lockstep::app {

Command add_run(CLI::App& parent) {
  auto settings = std::make_shared<SupervisorSettings>();
  auto pass_as = std::make_shared<std::string>();
  settings->refused_code = kWrongInput;
  settings->stopped_code = kStoppedEarly;
  CLI::App* command =
      parent.add_subcommand("run", "Run a training command, and again from its last checkpoint when it fails");
  command->add_option("--max-restarts", settings->max_restarts, "How often it may be started again")
      ->required()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option(
          "--min-ranks", settings->min_ranks,
          "After a restart that fails soon, lower -np by one, down to this (or to the next number that the run "
          "accepts)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--delay", settings->delay,
                   "Seconds before a restart, doubled from one launch that ends soon to the next")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--soon", settings->soon, "Seconds within which a restart fails soon")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option(
          "--pass-as", *pass_as,
          "Signal that the command gets for SIGTERM and SIGINT, e.g. SIGUSR1: mpirun passes that one on to its "
          "ranks, for the others it ends them within two seconds")
      ->check(CLI::IsMember(stop_signal_names()));
  command->add_option("COMMAND", settings->command, "-- mpirun -np 4 lockstep train FILE ...")->required();
  command->footer(
      "Exit code: that of the last launch. 0 and 2 (wrong input) end it, so does 75 (the run was asked to end and is "
      "saved), and so does SIGTERM, SIGINT or SIGUSR1, which are passed on.");
  return [settings, pass_as] {
    settings->pass_as = signal_number(*pass_as);
    return supervise(*settings,
                     [](const std::string& line) { std::fprintf(stderr, "lockstep run: %s\n", line.c_str()); });
  };
}

}  // namespace lockstep::app

// lockstep: parses the command line and runs one subcommand.
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "core/error.h"

int main(int argc, char** argv) {
  using namespace lockstep::app;
  CLI::App app{"lockstep: data-parallel training from a YAML file, on as many ranks as mpirun or srun starts"};
  app.name("lockstep");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Command>> commands;
  for (Command (*add)(CLI::App&) : {add_train, add_run, add_plan, add_config, add_plot, add_bench, add_doctor, add_eval,
                                    add_predict, add_export, add_inspect, add_compare}) {
    Command run = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(run));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kSuccess : kWrongInput;
  }
  try {
    for (const auto& [command, run] : commands) {
      if (command->parsed()) return run();
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep: %s\n", error.what());
  }
  return kWrongInput;
}

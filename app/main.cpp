// lockstep: parses the command line and runs one subcommand.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "core/error.h"
#include "train/config.h"
#include "train/config_suggest.h"

namespace lockstep::app {
namespace {

// What may have been meant by a command or an option that there isn't.
std::string hint_for(const std::vector<std::string>& arguments, const CLI::App& app) {
  if (arguments.empty()) return "";
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (std::ranges::find(commands, arguments[0]) == commands.end())
    return fmt::format("lockstep: no command '{}'{}", arguments[0], did_you_mean(arguments[0], commands));
  const CLI::App& command = *app.get_subcommand(arguments[0]);
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--") || command.get_option_no_throw(argument) != nullptr) continue;
    std::string name = argument.substr(2, argument.find('=') - 2);
    std::ranges::replace(name, '-', '_');
    for (const std::string& key : config_keys()) {
      if (key == name || key.ends_with("." + name))
        return fmt::format("lockstep: keys of the config are set like this: --set {}=VALUE", key);
    }
  }
  return "";
}

}  // namespace
}  // namespace lockstep::app

int main(int argc, char** argv) {
  using namespace lockstep::app;
  CLI::App app{"lockstep: data-parallel training from a YAML file, on as many ranks as mpirun or srun starts"};
  app.name("lockstep");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text, "Print the version, and what the program was built with and finds");
  std::vector<std::pair<CLI::App*, Command>> commands;
  for (Command (*add)(CLI::App&) :
       {add_train, add_run, add_plan, add_config, add_plot, add_bench, add_doctor, add_top, add_describe, add_report,
        add_sweep, add_eval, add_predict, add_export, add_inspect, add_compare, add_lr_find, add_tune}) {
    Command run = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(run));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    if (code == 0) return kSuccess;
    if (const std::string hint = hint_for({argv + 1, argv + argc}, app); !hint.empty())
      std::fprintf(stderr, "%s\n", hint.c_str());
    return kWrongInput;
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

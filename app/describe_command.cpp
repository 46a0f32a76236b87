// lockstep describe --man | --completion: the command line for man and for the shell, as the installation wants them.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/man_page.h"

namespace lockstep::app {

Command add_describe(CLI::App& parent) {
  struct Options {
    bool man = false, completion = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("describe", "Print the man page, or the completion script of bash and zsh");
  auto* what = command->add_option_group("what");
  what->add_flag("--man", options->man, "The man page: lockstep describe --man | man -l -");
  what->add_flag("--completion", options->completion, "The script: source <(lockstep describe --completion)");
  what->require_option(1);
  return [options, &parent] {
    std::fputs((options->man ? man_page(parent) : completion(parent)).c_str(), stdout);
    return static_cast<int>(kSuccess);
  };
}

}  // namespace lockstep::app

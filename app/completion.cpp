#include <fmt/format.h>

#include "app/man_page.h"
#include "train/config.h"

namespace lockstep::app {
namespace {

std::string long_options(const CLI::App& app) {
  std::string names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names += " --" + name;
  return names.substr(std::min<size_t>(1, names.size()));
}

}  // namespace

std::string completion(const CLI::App& program) {
  std::string commands, cases, keys;
  for (const CLI::App* command : program.get_subcommands({})) {
    commands += command->get_name() + " ";
    cases += fmt::format("    {}) options='{}' ;;\n", command->get_name(), long_options(*command));
  }
  for (const std::string& key : config_keys()) keys += key + " ";
  return fmt::format(
      R"(# Completion of lockstep's commands, options and config keys for bash; for zsh after: autoload bashcompinit; bashcompinit
_lockstep() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} options=''
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '{}{}' -- "$word"))
    return
  fi
  if [[ $previous == --set ]]; then
    compopt -o nospace 2> /dev/null || :  # there is none where no completion runs
    COMPREPLY=($(compgen -S = -W '{}' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  fi
}}
complete -o default -F _lockstep lockstep
)",
      commands, long_options(program), keys, cases);
}

}  // namespace lockstep::app

// lockstep config FILE: the file with every default filled in, itself a valid config.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "train/config.h"

namespace lockstep::app {

Command add_config(CLI::App& parent) {
  struct Options {
    std::string file;
    std::vector<std::string> set;
    bool reference = false, schema = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("config", "Print a config file with every default filled in");
  auto* file = command->add_option("CONFIG", options->file, "YAML file");
  command->add_option("--set", options->set, "Override a key: --set train.batch_size=8")->allow_extra_args(false);
  command->add_flag("--reference", options->reference, "Print the reference of all keys (Markdown) instead")
      ->excludes(file);
  command->add_flag("--schema", options->schema, "Print the JSON schema of config files, for editors, instead")
      ->excludes(file);
  return [options] {
    if (options->reference) {
      std::fputs(config_reference().c_str(), stdout);
    } else if (options->schema) {
      std::fputs(config_json_schema().c_str(), stdout);
    } else {
      std::fputs(to_yaml(load_config(options->file, options->set)).c_str(), stdout);
    }
    return static_cast<int>(kSuccess);
  };
}

}  // namespace lockstep::app

// Relative paths of a config start at its project root, so that a config means the same from any working directory.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace lockstep {

// The nearest directory, from the config's own upwards, that holds datasets/ or configs/; else the config's own.
std::string project_root(const std::string& config_path);
// `path` where absolute, else below the project root of config.path.
std::string resolve_path(const Config& config, const std::string& path);

// Every name of a data file in a config, to change it. Empty ones are left out.
std::vector<std::string*> data_files(Config& config);
// The config as a file that means the same where it will lie: paths are absolute where relative ones would start at
// another project root.
std::string to_yaml_at(Config config, const std::string& path);

}  // namespace lockstep

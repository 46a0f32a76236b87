// Relative paths of a config start at its project root, so that a config means the same from any working directory.
#pragma once

#include <string>

#include "train/config.h"

namespace lockstep {

// The nearest directory, from the config's own upwards, that holds datasets/ or configs/; else the config's own.
std::string project_root(const std::string& config_path);
// `path` where absolute, else below the project root of config.path.
std::string resolve_path(const Config& config, const std::string& path);

}  // namespace lockstep

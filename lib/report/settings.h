// A config text as a flat list of dotted keys, so that configs can be compared key by key.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// {"train.batch_size", "32"}, ...; a list of scalars is one value, "[1, 2]"; entries of other lists have their number
// in the key. Throws Error "source:line:column: ..." for what is not YAML.
std::vector<std::pair<std::string, std::string>> dotted_settings(const std::string& yaml, const std::string& source);

}  // namespace lockstep

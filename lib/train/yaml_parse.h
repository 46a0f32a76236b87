// YAML text to a tree of nodes: the only place that sees yaml-cpp. Refuses what a config has no use for (tags, merge
// keys, several documents, duplicate keys) and bounds size, depth and alias expansion. Errors say file:line:column.
#pragma once

#include <string>
#include <string_view>

#include "train/yaml_node.h"

namespace lockstep {

constexpr size_t kMaxYamlBytes = size_t{1} << 20;  // yaml-cpp may need some 200 times that
constexpr size_t kMaxYamlNodes = 100'000;          // after aliases are expanded
constexpr size_t kMaxYamlDepth = 32;

// One document. `source` is the name in messages. Throws Error for anything but a single well-formed document.
YamlNode parse_yaml(std::string_view text, const std::string& source);
// The value of --set KEY=VALUE: one flow value (8, [1, 2], {kind: adam}, "a, b"). Positions read "--set KEY".
YamlNode parse_yaml_override(std::string_view value, const std::string& key);

}  // namespace lockstep

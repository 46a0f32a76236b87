// --set key=value: a change of the YAML tree before it is read, so that the same checks see the result.
#pragma once

#include <string>
#include <string_view>

#include "train/yaml_node.h"

namespace lockstep {

// "train.batch_size=8", "model.layers.0.linear=64", "optimizer={kind: sgd, lr: 0.1}". Maps on the way are made, list
// entries must exist, a scalar that stands for a map (device: cpu) becomes one. Throws Error "--set KEY: ...".
void apply_override(YamlNode& root, std::string_view assignment);

}  // namespace lockstep

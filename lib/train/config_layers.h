// model.layers: `relu`, `{linear: 128}`, `{conv2d: {out: 32, kernel: 3}, name: conv1}` to LayerSpec and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/model_spec.h"
#include "train/config_schema.h"

namespace lockstep {

struct LayerKind {
  std::string name;
  Schema schema;  // of LayerSpec; scalar_key is the main field: {linear: 128} stands for {linear: {out: 128}}
};

const std::vector<LayerKind>& layer_kinds_table();
const LayerKind* find_layer_kind(std::string_view name);

// Throws Error with the entry's position: no or several kinds, unknown keys, duplicate names, references to layers that
// don't exist or come later.
void read_layers(const YamlNode& node, const std::string& path, std::vector<LayerSpec>& layers);
// "{conv2d: {out: 32, ...}, name: conv1}"
std::string print_layer(const LayerSpec& layer);

}  // namespace lockstep

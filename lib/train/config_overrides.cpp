// Walks a dotted path through the tree and puts the value there.
#include "train/config_overrides.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"
#include "train/config_layers.h"
#include "train/config_scalar.h"
#include "train/config_schema.h"
#include "train/config_suggest.h"
#include "train/yaml_parse.h"

namespace lockstep {
namespace {

std::vector<std::string> split(const std::string& key, const YamlPosition& at) {
  std::vector<std::string> parts{""};
  for (const char c : key) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (const std::string& part : parts) {
    if (part.empty()) fail_at(at, "expected a dotted path such as train.batch_size");
  }
  if (parts.size() > kMaxYamlDepth) fail_at(at, "the path is too long");
  return parts;
}

bool is_layer_entry(const std::vector<std::string>& path) {
  return path.size() == 3 && path[0] == "model" && path[1] == "layers";
}

// The key that a scalar or a list at `path` stands for (`device: cpu` is kind: cpu), empty where it is just a value.
std::string main_key(const std::vector<std::string>& path) {
  if (path.size() == 4 && path[0] == "model" && path[1] == "layers") {
    const LayerKind* kind = find_layer_kind(path[3]);
    return kind == nullptr ? "" : kind->schema.scalar_key;
  }
  const Schema* schema = &root_schema();
  for (size_t i = 0; i < path.size(); ++i) {
    const Key* key = schema->find(path[i]);
    if (key == nullptr || key->child == nullptr) return "";
    if (key->is_list && ++i == path.size()) return "";  // the list itself; its entries are the maps
    schema = &key->child();
  }
  return schema->scalar_key;
}

// Makes a map of what stands at `path`, unless it is one; lists stay lists.
void open_map(YamlNode& node, const std::vector<std::string>& path, const YamlPosition& at) {
  const bool is_nothing = node.kind == YamlNode::Kind::null || node.kind == YamlNode::Kind::empty;
  YamlNode map;
  map.kind = YamlNode::Kind::map;
  map.at = at;
  if (is_nothing) {
    node = std::move(map);
    return;
  }
  if (!node.is_scalar()) return;
  map.at = node.at;
  const std::string key = is_layer_entry(path) ? node.text : main_key(path);
  if (key.empty()) fail_at(at, fmt::format("{} is {}, not a map", join(path, "."), node.describe()));
  YamlNode nothing;
  nothing.at = node.at;
  map.keys.push_back({key, node.at});
  map.items.push_back(is_layer_entry(path) ? nothing : node);
  node = std::move(map);
}

YamlNode& entry_of_list(YamlNode& list, const std::string& part, const std::vector<std::string>& path,
                        const YamlPosition& at) {
  int64_t index = 0;
  const auto size = static_cast<int64_t>(list.items.size());
  if (parse_integer(part, index).empty() && index >= 0 && index < size) return list.items[static_cast<size_t>(index)];
  fail_at(at, fmt::format("{} is a list of {}; expected an index from 0 to {}, found '{}'", join(path, "."), size,
                          size - 1, printable(part)));
}

YamlNode& entry_of_map(YamlNode& map, const std::string& part, const YamlPosition& at) {
  const int index = map.find(part);
  if (index >= 0) return map.items[static_cast<size_t>(index)];
  YamlNode nothing;
  nothing.at = at;
  map.keys.push_back({part, at});
  map.items.push_back(std::move(nothing));
  return map.items.back();
}

}  // namespace

void apply_override(YamlNode& root, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string key(assignment.substr(0, equals));
  const YamlPosition at{std::make_shared<const std::string>("--set " + printable(key)), 0, 0};
  if (equals == std::string_view::npos) fail_at(at, "expected KEY=VALUE");
  const std::vector<std::string> parts = split(key, at);
  YamlNode value = parse_yaml_override(assignment.substr(equals + 1), printable(key));
  YamlNode* node = &root;
  std::vector<std::string> path;
  for (const std::string& part : parts) {
    open_map(*node, path, at);
    if (node->kind == YamlNode::Kind::list && !main_key(path).empty()) {  // {max_pool2d: [2, 2]} stands for a map too
      YamlNode map;
      map.kind = YamlNode::Kind::map;
      map.at = node->at;
      map.keys.push_back({main_key(path), node->at});
      map.items.push_back(*node);
      *node = std::move(map);
    }
    node = node->kind == YamlNode::Kind::list ? &entry_of_list(*node, part, path, at) : &entry_of_map(*node, part, at);
    path.push_back(part);
  }
  *node = std::move(value);
}

}  // namespace lockstep

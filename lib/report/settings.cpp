#include "report/settings.h"

#include <algorithm>

#include "train/config_schema.h"
#include "train/yaml_parse.h"

namespace lockstep {
namespace {

std::string scalar(const YamlNode& node) { return node.is_scalar() ? node.text : "null"; }

void flatten(const YamlNode& node, const std::string& path, std::vector<std::pair<std::string, std::string>>& out) {
  const auto nested = [](const YamlNode& item) {
    return item.kind == YamlNode::Kind::map || item.kind == YamlNode::Kind::list;
  };
  if (node.kind == YamlNode::Kind::map) {
    for (size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], join_path(path, node.keys[i].text), out);
  } else if (node.kind == YamlNode::Kind::list && std::ranges::any_of(node.items, nested)) {
    for (size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], join_path(path, std::to_string(i)), out);
  } else if (node.kind == YamlNode::Kind::list) {
    std::string text;
    for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + scalar(item);
    out.emplace_back(path, "[" + text + "]");
  } else {
    out.emplace_back(path, scalar(node));
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> dotted_settings(const std::string& yaml, const std::string& source) {
  std::vector<std::pair<std::string, std::string>> settings;
  flatten(parse_yaml(yaml, source), "", settings);
  return settings;
}

}  // namespace lockstep

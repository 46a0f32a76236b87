// Look-up and description of YAML nodes.
#include "train/yaml_node.h"

#include "core/error.h"
#include "train/config_scalar.h"

namespace lockstep {

std::string YamlPosition::str() const {
  const std::string name = source ? *source : std::string("config");
  return line == 0 ? name : fmt::format("{}:{}:{}", name, line, column);
}

int YamlNode::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return static_cast<int>(i);
  }
  return -1;
}

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::empty: return "nothing";
    case Kind::plain: return fmt::format("'{}'", printable(text));
    case Kind::quoted: return fmt::format("the quoted text \"{}\"", printable(text));
    case Kind::list: return "a list";
    case Kind::map: return "a map";
  }
  return "";
}

void fail_at(const YamlPosition& at, const std::string& message) { throw_error("{}: {}", at.str(), message); }

void fail_path(const YamlPosition& at, const std::string& path, const std::string& message) {
  if (at.line == 0 && at.str() == "--set " + path) fail_at(at, message);
  fail_at(at, fmt::format("{}: {}", path, message));
}

}  // namespace lockstep

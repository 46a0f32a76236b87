// Walks a YAML map along its schema: unknown, missing and misplaced keys are found here, values by config_value.
#include <algorithm>

#include "core/error.h"
#include "train/config_scalar.h"
#include "train/config_schema.h"
#include "train/config_suggest.h"

namespace lockstep {
namespace {

std::string in_section(const std::string& path) { return path.empty() ? "at the top level" : "in " + path; }

void check_known(const Schema& schema, const YamlNode& map, const std::string& path) {
  for (const YamlKey& given : map.keys) {
    if (schema.find(given.text) != nullptr) continue;
    fail_at(given.at, fmt::format("unknown key '{}' {}{}", printable(given.text), in_section(path),
                                  suggest_key(schema, given.text)));
  }
}

void read_key(const Schema& schema, const Key& key, const MapView& view, void* object) {
  const int index = view.node.find(key.name);
  if (!view.has(key.name)) {
    if (key.required && schema.applies(key, object)) {
      const std::string kind =
          key.kinds.empty() ? "" : fmt::format(" ({} {})", schema.discriminator, schema.kind_of(object));
      const std::string name = view.path.empty() ? "" : view.path + ": ";
      fail_at(view.node.at, fmt::format("{}missing key '{}'{}{}", name, key.name, kind, key.example));
    }
    if (key.read_absent) {
      YamlNode nothing;
      nothing.at = view.at(key.name);
      key.read(nothing, join_path(view.path, key.name), object);
      return;
    }
    if (index < 0 || !key.null_is_value) return;
  }
  const auto at = static_cast<size_t>(index);
  const std::string path = join_path(view.path, key.name);
  if (!schema.applies(key, object)) {
    fail_at(view.node.keys[at].at, fmt::format("{} belongs to {} {}, not {}", path, schema.discriminator,
                                               join(key.kinds, " | "), schema.kind_of(object)));
  }
  key.read(view.node.items[at], path, object);
}

}  // namespace

std::string join_path(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

bool MapView::has(std::string_view key) const {
  const int index = node.find(key);
  return index >= 0 && node.items[static_cast<size_t>(index)].kind != YamlNode::Kind::null;
}

YamlPosition MapView::at(std::string_view key) const {
  const int index = node.find(key);
  return index < 0 ? node.at : node.items[static_cast<size_t>(index)].at;
}

void MapView::fail(std::string_view key, const std::string& message) const {
  fail_at(at(key), fmt::format("{} {}", join_path(path, std::string(key)), message));
}

const Key* Schema::find(std::string_view name) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

bool Schema::applies(const Key& key, const void* object) const {
  return key.kinds.empty() || std::find(key.kinds.begin(), key.kinds.end(), kind_of(object)) != key.kinds.end();
}

void read_map(const Schema& schema, const YamlNode& node, const std::string& path, void* object) {
  const bool is_map = node.kind == YamlNode::Kind::map;
  const bool is_nothing = node.kind == YamlNode::Kind::null || node.kind == YamlNode::Kind::empty;
  if (!is_map && !is_nothing && !schema.scalar_key.empty()) {
    YamlNode map;
    map.kind = YamlNode::Kind::map;
    map.at = node.at;
    map.keys.push_back({schema.scalar_key, node.at});
    map.items.push_back(node);
    read_map(schema, map, path, object);
    return;
  }
  if (!is_map && !is_nothing) {
    const std::string name = path.empty() ? "the top level" : path;
    fail_value(node, name, fmt::format("expected a map of keys, found {}", node.describe()));
  }
  check_known(schema, node, path);
  const MapView view{node, path};
  if (const Key* first = schema.find(schema.discriminator)) read_key(schema, *first, view, object);
  for (const Key& key : schema.keys) {
    if (key.name != schema.discriminator) read_key(schema, key, view, object);
  }
  if (schema.finish) schema.finish(object, view);
}

std::string print_map(const Schema& schema, const void* object) {
  std::string text = "{";
  for (const Key& key : schema.keys) {
    if (!schema.applies(key, object)) continue;
    std::string value;
    if (key.print) {
      value = key.print(object);
    } else {
      const void* child = key.child_object(object);
      value = child == nullptr ? "null" : print_map(key.child(), child);
    }
    text += (text.size() > 1 ? ", " : "") + key.name + ": " + value;
  }
  return text + "}";
}

}  // namespace lockstep

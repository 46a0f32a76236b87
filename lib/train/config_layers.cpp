// One entry of the list is a kind, or a map of one kind with `name` and `input`. Names are checked over the whole list.
#include "train/config_layers.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "train/config_scalar.h"
#include "train/config_suggest.h"

namespace lockstep {
namespace {

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const LayerKind& kind : layer_kinds_table()) names.push_back(kind.name);
  return names;
}

[[noreturn]] void fail_unknown(const YamlKey& key, const std::string& path, const LayerKind* kind) {
  if (kind != nullptr && kind->schema.find(key.text) != nullptr) {
    fail_path(key.at, path,
              fmt::format("'{}' belongs inside {}: {{{}: {{{}: ...}}}}", key.text, kind->name, kind->name, key.text));
  }
  std::vector<std::string> known = kind_names();
  known.insert(known.end(), {"name", "input"});
  const std::string suggestion = did_you_mean(key.text, known);
  fail_path(key.at, path,
            fmt::format("unknown layer kind '{}'{}", printable(key.text),
                        suggestion.empty() ? "; known: " + join(kind_names(), ", ") : suggestion));
}

void read_entry(const YamlNode& node, const std::string& path, LayerSpec& layer) {
  layer.where = node.at.str();
  if (node.is_scalar()) {
    const LayerKind* kind = find_layer_kind(node.text);
    if (kind == nullptr) fail_unknown({node.text, node.at}, path, nullptr);
    layer.kind = kind->name;
    YamlNode nothing;
    nothing.at = node.at;
    read_map(kind->schema, nothing, join_path(path, kind->name), &layer);
    return;
  }
  if (node.kind != YamlNode::Kind::map) {
    fail_value(node, path, fmt::format("expected a layer such as relu or {{linear: 128}}, found {}", node.describe()));
  }
  const LayerKind* kind = nullptr;
  for (const YamlKey& key : node.keys) {
    const LayerKind* found = find_layer_kind(key.text);
    if (found != nullptr && kind != nullptr) {
      fail_path(key.at, path, fmt::format("an entry has one kind, found {} and {}", kind->name, found->name));
    }
    if (found != nullptr) kind = found;
  }
  for (const YamlKey& key : node.keys) {
    if (key.text != "name" && key.text != "input" && find_layer_kind(key.text) == nullptr)
      fail_unknown(key, path, kind);
  }
  if (kind == nullptr) {
    fail_value(node, path, "the entry has no kind; known: " + join(kind_names(), ", "));
  }
  layer.kind = kind->name;
  const MapView view{node, path};
  for (const auto& [key, text] : {std::pair{"name", &layer.name}, std::pair{"input", &layer.input}}) {
    if (view.has(key)) {
      read_value(node.items[static_cast<size_t>(node.find(key))], join_path(path, key), anything(), *text);
    }
  }
  read_map(kind->schema, node.items[static_cast<size_t>(node.find(kind->name))], join_path(path, kind->name), &layer);
}

// Position of what an entry says for `key`: of the entry itself where it is a bare word.
YamlPosition position_of(const YamlNode& entry, const std::string& key) {
  const int index = entry.find(key);
  return index < 0 ? entry.at : entry.items[static_cast<size_t>(index)].at;
}

using NameTable = std::map<std::string, size_t>;  // layer name (or index) -> place in the list

NameTable collect_names(const YamlNode& node, const std::string& path, const std::vector<LayerSpec>& layers) {
  NameTable names;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = layers[i].name.empty() ? std::to_string(i) : layers[i].name;
    const YamlPosition at = position_of(node.items[i], "name");
    if (name == "input") fail_path(at, fmt::format("{}.{}.name", path, i), "'input' is the network's input");
    const auto [earlier, inserted] = names.emplace(name, i);
    if (inserted) continue;
    const std::string other = layers[earlier->second].name.empty() ? " (unnamed: its index is its name)" : "";
    fail_path(at, fmt::format("{}.{}", path, i),
              fmt::format("the name '{}' is taken by {}.{}{}", printable(name), path, earlier->second, other));
  }
  return names;
}

void check_reference(const NameTable& names, const std::string& target, size_t reader, const std::string& path,
                     const YamlPosition& at) {
  if (target.empty() || target == "input") return;
  const auto found = names.find(target);
  if (found == names.end()) {
    std::vector<std::string> earlier{"input"};
    for (const auto& [name, index] : names) {
      if (index < reader) earlier.push_back(name);
    }
    fail_path(at, path, fmt::format("no layer is named '{}'{}", printable(target), did_you_mean(target, earlier)));
  }
  if (found->second >= reader) {
    fail_path(at, path, fmt::format("the layer '{}' does not come before this one", printable(target)));
  }
}

}  // namespace

void read_layers(const YamlNode& node, const std::string& path, std::vector<LayerSpec>& layers) {
  check_list(node, path, anything().items(1), "layers");
  layers.assign(node.items.size(), LayerSpec{});
  for (size_t i = 0; i < layers.size(); ++i) read_entry(node.items[i], join_path(path, std::to_string(i)), layers[i]);
  const NameTable names = collect_names(node, path, layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string entry = join_path(path, std::to_string(i));
    check_reference(names, layers[i].input, i, entry + ".input", position_of(node.items[i], "input"));
    check_reference(names, layers[i].add, i, entry + ".add", position_of(node.items[i], "add"));
  }
}

std::string print_layer(const LayerSpec& layer) {
  if (layer.make) return print_text(layer.kind);  // for people: no file can say it
  const LayerKind* kind = find_layer_kind(layer.kind);
  if (kind == nullptr) throw_error("model.layers: unknown layer kind '{}'", layer.kind);
  const std::string keys = kind->schema.keys.empty() ? "" : print_map(kind->schema, &layer);
  if (keys.empty() && layer.name.empty() && layer.input.empty()) return layer.kind;
  std::string text = "{" + layer.kind + ": " + (keys.empty() ? "{}" : keys);
  if (!layer.name.empty()) text += ", name: " + print_text(layer.name);
  if (!layer.input.empty()) text += ", input: " + print_text(layer.input);
  return text + "}";
}

}  // namespace lockstep

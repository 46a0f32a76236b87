// `lockstep config`: the resolved file, a key a line with its meaning behind it.
#include "train/config.h"
#include "train/config_schema.h"

namespace lockstep {
namespace {

void print_block(const Schema& schema, const void* object, const std::string& indent, std::string& text) {
  for (const Key& key : schema.keys) {
    if (!schema.applies(key, object)) continue;
    const void* child = key.print ? nullptr : key.child_object(object);
    if (child != nullptr && !key.is_inline) {
      text += (indent.empty() ? "\n" : "") + indent + key.name + ":\n";
      print_block(key.child(), child, indent + "  ", text);
      continue;
    }
    const std::string value = key.print ? key.print(object) : child == nullptr ? "null" : print_map(key.child(), child);
    const bool is_list = value.starts_with('\n');  // model.layers: a layer a line
    text += indent + key.name + (is_list ? ":" : ": ") + value + (is_list ? "\n" : "  # " + key.doc + "\n");
  }
}

}  // namespace

std::string to_yaml(const Config& config) {
  std::string text =
      "# Resolved by `lockstep config`: every key that applies. Relative paths start at the project root.\n";
  print_block(root_schema(), &config, "", text);
  return text;
}

}  // namespace lockstep

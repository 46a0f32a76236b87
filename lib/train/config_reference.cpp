// docs/config.md: the tables of keys as Markdown, between the rules that no table can say (config_reference_text).
#include <fmt/format.h>

#include <set>

#include "train/config.h"
#include "train/config_layers.h"
#include "train/config_reference_text.h"
#include "train/config_schema.h"
#include "train/config_suggest.h"

namespace lockstep {
namespace {

// A bar would end the cell.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string default_of(const Schema& schema, const Key& key) {
  if (!key.default_text.empty()) return key.default_text;
  if (key.required) return "required";
  if (!key.print) return key.type == "map or null" ? "null" : "";
  return fmt::format("`{}`", key.print(schema.defaults.get()));
}

std::string table(const Schema& schema) {
  std::string text = "| Key | Type | Default | Values | Meaning |\n|---|---|---|---|---|\n";
  for (const Key& key : schema.keys) {
    const std::string kinds =
        key.kinds.empty() ? "" : fmt::format(" ({}: {})", schema.discriminator, join(key.kinds, ", "));
    const std::string bounds = key.bounds.empty() ? "" : fmt::format("`{}`", cell(key.bounds));
    text += fmt::format("| `{}` | {} | {} | {} | {}{} |\n", key.name, cell(key.type), cell(default_of(schema, key)),
                        bounds, cell(key.doc), kinds);
  }
  return text;
}

void sections(const Schema& schema, const std::string& path, std::set<const Schema*>& seen, std::string& text) {
  if (!seen.insert(&schema).second) return;
  text += fmt::format("\n### {}\n\n{}\n", path.empty() ? "Sections" : fmt::format("`{}`", path), schema.doc);
  if (!schema.scalar_key.empty()) {
    text += fmt::format("`{}: VALUE` stands for `{}: {{{}: VALUE}}`.\n", path, path, schema.scalar_key);
  }
  text += fmt::format("\n{}", table(schema));
  for (const Key& key : schema.keys) {
    if (key.child != nullptr) sections(key.child(), join_path(path, key.name), seen, text);
  }
}

std::string layers() {
  std::string text;
  for (const LayerKind& kind : layer_kinds_table()) {
    text += fmt::format("\n#### `{}`\n\n{}\n", kind.name, kind.schema.doc);
    if (!kind.schema.scalar_key.empty()) {
      text += fmt::format("`{{{}: VALUE}}` stands for `{{{}: {{{}: VALUE}}}}`.\n", kind.name, kind.name,
                          kind.schema.scalar_key);
    }
    if (!kind.schema.keys.empty()) text += fmt::format("\n{}", table(kind.schema));
  }
  return text;
}

void collect_keys(const Schema& schema, const std::string& path, std::vector<std::string>& keys) {
  for (const Key& key : schema.keys) {
    const std::string name = join_path(path, key.name);
    if (key.child == nullptr) {
      keys.push_back(name);
    } else if (!key.is_list) {
      collect_keys(key.child(), name, keys);
    }
  }
}

}  // namespace

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  collect_keys(root_schema(), "", keys);
  return keys;
}

std::string config_reference() {
  std::string text = reference_introduction();
  std::set<const Schema*> seen;
  sections(root_schema(), "", seen, text);
  return text + reference_layers() + layers();
}

}  // namespace lockstep

// docs/config.schema.json: the tables of keys for editors, which complete and check a file while it is written. It
// knows types, bounds and which keys belong to which kind; what several keys say together is checked by reading the
// file.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "train/config.h"
#include "train/config_layers.h"
#include "train/config_schema.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const Json& schema) { return {{"anyOf", {schema, {{"type", "null"}}}}}; }

// Maps by the table that they are made from: a table can hold itself (a sequence of schedules).
struct Definitions {
  std::map<const Schema*, std::string> names;
  Json made = Json::object();
};

Json map_schema(const Schema& schema, Definitions& definitions);
Json layers_schema(Definitions& definitions);

Json reference(const Key& key, Definitions& definitions) {
  const Schema& schema = key.child();
  auto [entry, fresh] = definitions.names.try_emplace(&schema, key.name);
  if (fresh && definitions.made.contains(key.name)) entry->second += fmt::format("_{}", definitions.names.size());
  const std::string name = entry->second;
  if (fresh) {
    definitions.made[name] = nullptr;  // taken
    definitions.made[name] = map_schema(schema, definitions);
  }
  return {{"$ref", "#/$defs/" + name}};
}

Json value_schema(const Key& key, Definitions& definitions) {
  if (key.child == nullptr) return key.json.empty() ? layers_schema(definitions) : Json::parse(key.json);
  const Json map = reference(key, definitions);
  return key.is_list ? Json{{"type", "array"}, {"items", map}} : map;
}

bool applies(const Key& key, const std::string& kind) {
  return key.kinds.empty() || std::ranges::find(key.kinds, kind) != key.kinds.end();
}

// For each kind: the keys it needs, and those that belong to others.
Json kind_rules(const Schema& schema) {
  const Key& discriminator = *schema.find(schema.discriminator);
  const std::string by_default = discriminator.required ? "" : schema.kind_of(schema.defaults.get());
  Json rules = Json::array();
  const Json kinds = Json::parse(discriminator.json)["enum"];
  for (const auto& kind : kinds) {
    Json others = Json::object(), required = Json::array();
    for (const Key& key : schema.keys) {
      if (!applies(key, kind)) others[key.name] = {{"type", "null"}};
      if (applies(key, kind) && key.required && !key.kinds.empty()) required.push_back(key.name);
    }
    Json chosen = {{"properties", {{schema.discriminator, {{"const", kind}}}}}};
    if (kind != by_default) chosen["required"] = {schema.discriminator};
    Json then = Json::object();
    if (!others.empty()) then["properties"] = others;
    if (!required.empty()) then["required"] = required;
    if (!then.empty()) rules.push_back({{"if", chosen}, {"then", then}});
  }
  return rules;
}

Json map_schema(const Schema& schema, Definitions& definitions) {
  Json map = {{"description", schema.doc}, {"type", "object"}, {"additionalProperties", false}};
  Json required = Json::array();
  map["properties"] = Json::object();
  for (const Key& key : schema.keys) {
    Json value = key.required ? value_schema(key, definitions) : or_null(value_schema(key, definitions));
    value["description"] = key.doc;
    map["properties"][key.name] = value;
    if (key.required && key.kinds.empty()) required.push_back(key.name);
  }
  if (!required.empty()) map["required"] = required;
  if (!schema.discriminator.empty()) {
    if (const Json rules = kind_rules(schema); !rules.empty()) map["allOf"] = rules;
  }
  if (schema.scalar_key.empty()) return map;
  return {{"anyOf", {map, value_schema(*schema.find(schema.scalar_key), definitions)}}};
}

// A kind alone, or a map of one kind with name and input beside it.
Json layers_schema(Definitions& definitions) {
  Json names = Json::array(), one_kind = Json::array(), kinds = Json::object();
  const Json text = {{"type", {"string", "number"}}};
  for (const LayerKind& kind : layer_kinds_table()) {
    if (std::ranges::none_of(kind.schema.keys, &Key::required)) names.push_back(kind.name);
    kinds[kind.name] = or_null(map_schema(kind.schema, definitions));
    one_kind.push_back({{"required", {kind.name}}});
  }
  kinds["name"] = text, kinds["input"] = text;
  const Json map = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", kinds}, {"oneOf", std::move(one_kind)}};
  return {{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", {{{"enum", names}}, map}}}}};
}

}  // namespace

std::string config_json_schema() {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A lockstep config"}};
  Definitions definitions;
  root.update(map_schema(root_schema(), definitions));
  root["$defs"] = definitions.made;
  return root.dump(1) + "\n";
}

}  // namespace lockstep

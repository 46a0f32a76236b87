// The table behind the config: one Key per entry of a map, one Schema per map. Reading, printing, docs/config.md and
// "did you mean" all walk the same tables (config_keys_*.cpp), so a key exists everywhere or nowhere.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/config_rule.h"
#include "train/config_value.h"
#include "train/yaml_node.h"

namespace lockstep {

struct Schema;
using SchemaFunction = const Schema& (*)();

struct Key {
  std::string name;
  std::string type;    // for docs
  std::string bounds;  // for docs
  std::string json;    // JSON schema of the value; empty for sections
  std::string doc;
  std::string default_text;           // for docs, where the struct's own default says too little
  std::string example;                // for the message that a required key is missing
  std::vector<std::string> kinds;     // values of the schema's discriminator to which the key belongs; empty: all
  std::vector<std::string> synonyms;  // names elsewhere, for "did you mean"
  bool required = false;
  bool null_is_value = false;  // else null is the same as leaving the key out
  bool is_list = false;        // a list of child maps
  bool is_inline = false;      // a child map that fills members of the same object; printed in one line
  bool read_absent = false;    // sections: an absent one is read as an empty map, so that its checks run

  std::function<void(const YamlNode&, const std::string& path, void* object)> read;
  std::function<std::string(const void* object)> print;         // flow text; null for sections
  SchemaFunction child = nullptr;                               // sections
  std::function<const void*(const void* object)> child_object;  // sections; null pointer: absent

  Key of(std::vector<std::string> names) && { return kinds = std::move(names), std::move(*this); }
  Key also(std::vector<std::string> names) && { return synonyms = std::move(names), std::move(*this); }
  Key by_default(std::string text) && { return default_text = std::move(text), std::move(*this); }
  Key must(const std::string& such_as = "") && {
    required = true;
    if (!such_as.empty()) example = "; for example " + such_as;
    return std::move(*this);
  }
};

// What a schema's check sees of the map it was read from.
struct MapView {
  const YamlNode& node;  // a map, or empty
  const std::string& path;
  bool has(std::string_view key) const;         // given and not null
  YamlPosition at(std::string_view key) const;  // of its value; of the map where absent
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;  // "POSITION: PATH.KEY MESSAGE"
};

struct Schema {
  std::string doc;
  std::string scalar_key;     // `device: cpu` stands for `device: {kind: cpu}`; empty: a map is a must
  std::string discriminator;  // the key whose value decides which others belong
  std::function<std::string(const void* object)> kind_of;
  std::function<void(void* object, const MapView&)> finish;  // checks over several keys
  std::shared_ptr<const void> defaults;                      // an object as constructed
  std::vector<Key> keys;

  const Key* find(std::string_view name) const;
  bool applies(const Key& key, const void* object) const;
};

const Schema& root_schema();

std::string join_path(const std::string& path, const std::string& key);
// Fills `object` from a map (or the scalar that stands for one). Throws Error for the first thing that is wrong.
void read_map(const Schema& schema, const YamlNode& node, const std::string& path, void* object);
// "{a: 1, b: [2, 3]}": every key that applies.
std::string print_map(const Schema& schema, const void* object);
// "; did you mean optimizer.lr?" or "; known keys: ...", for a key that `schema` hasn't.
std::string suggest_key(const Schema& schema, std::string_view unknown);

template <class S, class T>
Key key(std::string name, T S::*member, const Rule& rule, std::string doc) {
  Key result;
  result.name = std::move(name);
  result.type = type_name(T{});
  result.bounds = rule.describe();
  result.json = json_schema(T{}, rule);
  result.doc = std::move(doc);
  result.read = [member, rule](const YamlNode& node, const std::string& path, void* object) {
    read_value(node, path, rule, static_cast<S*>(object)->*member);
  };
  result.print = [member](const void* object) { return print_value(static_cast<const S*>(object)->*member); };
  return result;
}

// An optional value for which null means something else than leaving the key out.
template <class S, class T>
Key nullable_key(std::string name, T S::*member, const Rule& rule, std::string doc) {
  Key result = key(std::move(name), member, rule, std::move(doc));
  result.null_is_value = true;
  return result;
}

template <class S, class C>
Key section(std::string name, C S::*member, SchemaFunction child, std::string doc) {
  Key result;
  result.name = std::move(name);
  result.type = "map";
  result.doc = std::move(doc);
  result.child = child;
  result.read_absent = true;
  result.read = [member, child](const YamlNode& node, const std::string& path, void* object) {
    read_map(child(), node, path, &(static_cast<S*>(object)->*member));
  };
  result.child_object = [member](const void* object) { return &(static_cast<const S*>(object)->*member); };
  return result;
}

template <class S, class C>
Key optional_section(std::string name, std::optional<C> S::*member, SchemaFunction child, std::string doc) {
  Key result = section(std::move(name), member, child, std::move(doc));
  result.type = "map or null";
  result.read_absent = false;
  result.read = [member, child](const YamlNode& node, const std::string& path, void* object) {
    read_map(child(), node, path, &(static_cast<S*>(object)->*member).emplace());
  };
  result.child_object = [member](const void* object) -> const void* {
    const auto& value = static_cast<const S*>(object)->*member;
    return value ? &*value : nullptr;
  };
  return result;
}

template <class S, class C>
Key section_list(std::string name, std::vector<C> S::*member, SchemaFunction child, const Rule& rule, std::string doc) {
  Key result;
  result.name = std::move(name);
  result.type = "list of maps";
  result.is_list = true;
  result.doc = std::move(doc);
  result.child = child;
  result.read = [member, child, rule](const YamlNode& node, const std::string& path, void* object) {
    check_list(node, path, rule, "maps");
    auto& list = static_cast<S*>(object)->*member;
    list.assign(node.items.size(), C{});
    for (size_t i = 0; i < list.size(); ++i)
      read_map(child(), node.items[i], join_path(path, std::to_string(i)), &list[i]);
  };
  result.print = [member, child](const void* object) {
    std::string text = "[";
    for (const C& item : static_cast<const S*>(object)->*member) {
      text += (text.size() > 1 ? ", " : "") + print_map(child(), &item);
    }
    return text + "]";
  };
  return result;
}

}  // namespace lockstep

// Between a YAML node and a C++ value, by the value's type: read with checks, print so that it reads back, name for
// docs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/config.h"
#include "train/config_rule.h"
#include "train/yaml_node.h"

namespace lockstep {

// Throw Error "POSITION: PATH: expected ..., found ...". `path` is the dotted name, as in --set.
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, bool& value);
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, int64_t& value);
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, uint64_t& value);
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, double& value);
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, std::string& value);
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, Period& value);
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, Duration& value);  // rule: of seconds
// n or [height, width]
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, std::array<int64_t, 2>& value);
// {from: to, ...}, in the order of the file; null is the empty text.
using TextPairs = std::vector<std::pair<std::string, std::string>>;
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, TextPairs& value);

std::string print_value(bool value);
std::string print_value(int64_t value);
std::string print_value(uint64_t value);
std::string print_value(double value);
std::string print_value(const std::string& value);
std::string print_value(const Period& value);
std::string print_value(const Duration& value);
std::string print_value(const std::array<int64_t, 2>& value);
std::string print_value(const TextPairs& value);

inline std::string type_name(const bool&) { return "true or false"; }
inline std::string type_name(const int64_t&) { return "integer"; }
inline std::string type_name(const uint64_t&) { return "integer"; }
inline std::string type_name(const double&) { return "number"; }
inline std::string type_name(const std::string&) { return "text"; }
inline std::string type_name(const Period&) { return "period"; }
inline std::string type_name(const Duration&) { return "duration"; }
inline std::string type_name(const TextPairs&) { return "map of texts"; }
inline std::string type_name(const std::array<int64_t, 2>&) { return "integer or [height, width]"; }

// For editors (config_json_schema.cpp): the text of a JSON schema.
std::string json_schema(const bool& type, const Rule& rule);
std::string json_schema(const int64_t& type, const Rule& rule);
std::string json_schema(const uint64_t& type, const Rule& rule);
std::string json_schema(const double& type, const Rule& rule);
std::string json_schema(const std::string& type, const Rule& rule);
std::string json_schema(const Period& type, const Rule& rule);
std::string json_schema(const Duration& type, const Rule& rule);
std::string json_schema(const std::array<int64_t, 2>& type, const Rule& rule);
std::string json_schema(const TextPairs& type, const Rule& rule);

[[noreturn]] void fail_value(const YamlNode& node, const std::string& path, const std::string& message);
void check_list(const YamlNode& node, const std::string& path, const Rule& rule, const std::string& what);

// null is a value of its own: nothing.
template <class T>
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, std::optional<T>& value) {
  if (node.kind == YamlNode::Kind::null) {
    value.reset();
    return;
  }
  T inner{};
  read_value(node, path, rule, inner);
  value = inner;
}

template <class T>
void read_value(const YamlNode& node, const std::string& path, const Rule& rule, std::vector<T>& value) {
  check_list(node, path, rule, type_name(T{}));
  value.clear();
  for (size_t i = 0; i < node.items.size(); ++i) {
    T item{};
    read_value(node.items[i], path + "." + std::to_string(i), rule, item);
    value.push_back(item);
  }
}

template <class T>
std::string print_value(const std::optional<T>& value) {
  return value ? print_value(*value) : "null";
}

template <class T>
std::string print_value(const std::vector<T>& value) {
  std::string text = "[";
  for (const T& item : value) text += (text.size() > 1 ? ", " : "") + print_value(item);
  return text + "]";
}

template <class T>
std::string type_name(const std::optional<T>&) {
  return type_name(T{}) + " or null";
}

template <class T>
std::string type_name(const std::vector<T>&) {
  return "list of " + type_name(T{});
}

template <class T>
std::string json_schema(const std::optional<T>& /*type*/, const Rule& rule) {
  return "{\"anyOf\": [" + json_schema(T{}, rule) + ", {\"type\": \"null\"}]}";
}

template <class T>
std::string json_schema(const std::vector<T>& /*type*/, const Rule& rule) {
  return "{\"type\": \"array\", \"items\": " + json_schema(T{}, rule) +
         ", \"minItems\": " + std::to_string(rule.least_items) + ", \"maxItems\": " + std::to_string(rule.most_items) +
         "}";
}

}  // namespace lockstep

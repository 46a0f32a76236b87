// The JSON schemas of single values, as texts: what config_value.cpp reads, said for editors.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "train/config_scalar.h"
#include "train/config_value.h"

namespace lockstep {
namespace {

std::string number_schema(const char* type, const Rule& rule) {
  std::string text = fmt::format(R"("type": "{}")", type);
  if (std::isfinite(rule.low))
    text += fmt::format(R"(, "{}": {})", rule.low_open ? "exclusiveMinimum" : "minimum", print_number(rule.low));
  if (std::isfinite(rule.high))
    text += fmt::format(R"(, "{}": {})", rule.high_open ? "exclusiveMaximum" : "maximum", print_number(rule.high));
  return "{" + text + "}";
}

std::string any_of(const std::string& one, const std::string& other) {
  return fmt::format(R"({{"anyOf": [{}, {}]}})", one, other);
}

std::string pattern(const char* regular_expression) {
  return nlohmann::json{{"type", "string"}, {"pattern", regular_expression}}.dump();
}

}  // namespace

std::string json_schema(const bool& /*type*/, const Rule& /*rule*/) { return R"({"type": "boolean"})"; }
std::string json_schema(const int64_t& /*type*/, const Rule& rule) { return number_schema("integer", rule); }
std::string json_schema(const uint64_t& /*type*/, const Rule& rule) {
  Rule natural = rule;
  natural.low = std::max(rule.low, 0.0);
  return number_schema("integer", natural);
}
std::string json_schema(const double& /*type*/, const Rule& rule) {
  const std::string number = number_schema("number", rule);
  return rule.infinity ? any_of(number, R"({"enum": ["inf", "-inf"]})") : number;
}
// A text may look like a number or a boolean to YAML.
std::string json_schema(const std::string& /*type*/, const Rule& rule) {
  if (rule.choices.empty()) return R"({"type": ["string", "number", "boolean"]})";
  return nlohmann::json{{"enum", rule.choices}}.dump();
}
std::string json_schema(const Period& /*type*/, const Rule& rule) {
  const std::string text = pattern("^(never|[1-9][0-9]* (steps?|epochs?))$");
  return rule.bare_is_steps ? any_of(text, R"({"type": "integer", "minimum": 1})") : text;
}
std::string json_schema(const Duration& /*type*/, const Rule& rule) {
  return any_of(number_schema("number", rule), pattern("^([0-9.]+d)?([0-9.]+h)?([0-9.]+m)?([0-9.]+s)?$"));
}
std::string json_schema(const std::array<int64_t, 2>& /*type*/, const Rule& rule) {
  const std::string one = number_schema("integer", rule);
  return any_of(one, fmt::format(R"({{"type": "array", "items": {}, "minItems": 2, "maxItems": 2}})", one));
}
std::string json_schema(const TextPairs& /*type*/, const Rule& /*rule*/) {
  return R"({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}})";
}

}  // namespace lockstep

// Reading and printing of single values.
#include "train/config_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/config_scalar.h"
#include "train/config_suggest.h"

namespace lockstep {
namespace {

// The text of a plain scalar; `expected` is the start of the message where the node is something else.
const std::string& plain_text(const YamlNode& node, const std::string& path, const std::string& expected) {
  switch (node.kind) {
    case YamlNode::Kind::plain: return node.text;
    case YamlNode::Kind::quoted:
      fail_value(node, path, fmt::format("expected {}, found {}; remove the quotes", expected, node.describe()));
    case YamlNode::Kind::empty:
      fail_value(node, path, fmt::format("expected {}, found nothing; write null for the default", expected));
    default: break;
  }
  fail_value(node, path, fmt::format("expected {}, found {}", expected, node.describe()));
}

template <class Integer>
void read_integer(const YamlNode& node, const std::string& path, const Rule& rule, Integer& value) {
  const std::string& text = plain_text(node, path, "an integer");
  const std::string error = parse_integer(text, value);
  if (!error.empty()) fail_value(node, path, error);
  if (!rule.contains(static_cast<long double>(value))) {
    fail_value(node, path, fmt::format("{} is out of range; expected an integer {}", value, rule.describe()));
  }
}

}  // namespace

void fail_value(const YamlNode& node, const std::string& path, const std::string& message) {
  fail_path(node.at, path, message);
}

void check_list(const YamlNode& node, const std::string& path, const Rule& rule, const std::string& what) {
  if (node.kind != YamlNode::Kind::list) {
    fail_value(node, path, fmt::format("expected a list [a, b] of {}, found {}", what, node.describe()));
  }
  const size_t size = node.items.size();
  if (size >= rule.least_items && size <= rule.most_items) return;
  if (rule.least_items == rule.most_items) {
    fail_value(node, path, fmt::format("expected {} items, found {}", rule.least_items, size));
  }
  if (size < rule.least_items) {
    fail_value(node, path, fmt::format("expected {} or more items, found {}", rule.least_items, size));
  }
  fail_value(node, path, fmt::format("expected {} items at most, found {}", rule.most_items, size));
}

void read_value(const YamlNode& node, const std::string& path, const Rule&, bool& value) {
  const std::string error = parse_boolean(plain_text(node, path, "true or false"), value);
  if (!error.empty()) fail_value(node, path, error);
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, int64_t& value) {
  read_integer(node, path, rule, value);
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, uint64_t& value) {
  read_integer(node, path, rule, value);
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, double& value) {
  const std::string& text = plain_text(node, path, "a number");
  const std::string error = parse_number(text, rule.infinity, value);
  if (!error.empty()) fail_value(node, path, error);
  if (!rule.contains(value)) {
    fail_value(node, path, fmt::format("{} is out of range; expected a number {}", printable(text), rule.describe()));
  }
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, std::string& value) {
  if (node.kind != YamlNode::Kind::quoted) plain_text(node, path, "a text");
  if (std::any_of(node.text.begin(), node.text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
    fail_value(node, path, "a text must not contain line ends or control characters");
  }
  if (node.text.empty() && !rule.may_be_empty) fail_value(node, path, "the text is empty");
  if (!rule.choices.empty() && std::find(rule.choices.begin(), rule.choices.end(), node.text) == rule.choices.end()) {
    fail_value(node, path,
               fmt::format("expected {}, found '{}'{}", join(rule.choices, " | "), printable(node.text),
                           did_you_mean(node.text, rule.choices)));
  }
  value = node.text;
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, Period& value) {
  constexpr const char* kForm = "'N epochs', 'N steps' or never";
  const std::string text = node.kind == YamlNode::Kind::quoted ? node.text : plain_text(node, path, kForm);
  const auto fail = [&](const std::string& hint) {
    fail_value(node, path, fmt::format("expected {}, found '{}'{}", kForm, printable(text), hint));
  };
  if (text == "never") {
    value = {Period::Kind::never, 0};
    return;
  }
  const size_t blank = text.find(' ');
  const std::string number = text.substr(0, blank);
  const std::string unit = blank == std::string::npos ? "" : text.substr(text.find_first_not_of(' ', blank));
  int64_t n = 0;
  if (!parse_integer(number, n).empty())
    fail(number == "epoch" || number == "step" ? "; write '1 " + number + "'" : "");
  if (unit.empty() && rule.bare_is_steps && n >= 1) {
    value = {Period::Kind::steps, n};
    return;
  }
  if (unit.empty()) fail(fmt::format("; write '{} epochs' or '{} steps'", n, n));
  const bool epochs = unit == "epoch" || unit == "epochs";
  if (!epochs && unit != "step" && unit != "steps") fail(did_you_mean(unit, {"epochs", "steps"}));
  if (n < 1) fail("; N is 1 or more");
  value = {epochs ? Period::Kind::epochs : Period::Kind::steps, n};
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, Duration& value) {
  const std::string& text = plain_text(node, path, "a duration");
  const std::string error = parse_duration(text, value.seconds);
  if (!error.empty()) fail_value(node, path, error);
  if (!rule.contains(value.seconds))
    fail_value(node, path,
               fmt::format("{} is out of range; expected a duration {} seconds", printable(text), rule.describe()));
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, std::array<int64_t, 2>& value) {
  if (node.kind != YamlNode::Kind::list) {
    int64_t both = 0;
    read_value(node, path, rule, both);
    value = {both, both};
    return;
  }
  if (node.items.size() != 2) {
    fail_value(node, path,
               fmt::format("expected an integer or [height, width], found a list of {}", node.items.size()));
  }
  for (size_t i = 0; i < 2; ++i) read_value(node.items[i], path + "." + std::to_string(i), rule, value[i]);
}

void read_value(const YamlNode& node, const std::string& path, const Rule& rule, TextPairs& value) {
  constexpr size_t kMost = 4096;
  if (node.kind != YamlNode::Kind::map)
    fail_value(node, path, fmt::format("expected a map {{name: name}}, found {}", node.describe()));
  if (node.items.size() > kMost) fail_value(node, path, fmt::format("expected {} names at most", kMost));
  value.clear();
  for (size_t i = 0; i < node.items.size(); ++i) {
    std::string text;
    if (node.items[i].kind != YamlNode::Kind::null) {
      read_value(node.items[i], path + "." + printable(node.keys[i].text), rule, text);
    }
    value.emplace_back(node.keys[i].text, text);
  }
}

std::string print_value(bool value) { return value ? "true" : "false"; }
std::string print_value(int64_t value) { return fmt::format("{}", value); }
std::string print_value(uint64_t value) { return fmt::format("{}", value); }
std::string print_value(double value) { return print_number(value); }
std::string print_value(const std::string& value) { return print_text(value); }
std::string print_value(const Period& value) { return value.str(); }
std::string print_value(const Duration& value) { return print_number(value.seconds); }
std::string print_value(const std::array<int64_t, 2>& value) {
  return value[0] == value[1] ? fmt::format("{}", value[0]) : fmt::format("[{}, {}]", value[0], value[1]);
}
std::string print_value(const TextPairs& value) {
  std::string text = "{";
  for (const auto& [from, to] : value)
    text += (text.size() > 1 ? ", " : "") + print_text(from) + ": " + (to.empty() ? "null" : print_text(to));
  return text + "}";
}

}  // namespace lockstep

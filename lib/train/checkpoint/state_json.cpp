#include "train/checkpoint/state_json.h"

#include <array>
#include <bit>
#include <limits>

#include "core/error.h"
#include "core/whole_number.h"
#include "train/checkpoint/json_text.h"
#include "train/config_scalar.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr int kDepth = 3;  // the map, a list's map, the list

// Decided by the bits: comparisons see subnormals as 0 where the processor flushes them.
bool is_plain(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t exponent = bits >> 52U & 0x7ffU, fraction = bits << 12U;
  return exponent != 0x7ff && (exponent != 0 || fraction == 0);
}

std::string bits_text(double value) { return fmt::format("\"{:016x}\"", std::bit_cast<uint64_t>(value)); }

std::string number_text(double value) {
  if (std::bit_cast<uint64_t>(value) << 1U == 0) return std::bit_cast<uint64_t>(value) == 0 ? "0.0" : "-0.0";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  std::string result(text.data(), end);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

template <class T, class F>
std::string list_text(const char* type, const std::vector<T>& items, const F& item_text) {
  std::string text = fmt::format("{{\"{}\": [", type);
  for (size_t i = 0; i < items.size(); ++i) text += (i > 0 ? ", " : "") + item_text(items[i]);
  return text + "]}";
}

struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    return is_plain(value) ? number_text(value) : fmt::format("{{\"bits\": {}}}", bits_text(value));
  }
  std::string operator()(const std::string& value) const { return quoted_json(value); }
  std::string operator()(const std::vector<int64_t>& value) const {
    return list_text("integers", value, [](int64_t item) { return std::to_string(item); });
  }
  std::string operator()(const std::vector<double>& value) const {
    return list_text("reals", value, [](double item) { return is_plain(item) ? number_text(item) : bits_text(item); });
  }
};

class StateReader {
 public:
  explicit StateReader(const std::string& path) : path_(path) {}

  State::Value value(const std::string& name, const Json& json) const {
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_string()) return json.get<std::string>();
    if (json.is_number_float()) return json.get<double>();
    if (json.is_number_integer()) return integer(name, json);
    if (json.is_object() && json.size() == 1) {
      const auto& content = json.begin().value();
      if (json.begin().key() == "bits") return bits(name, content);
      if (json.begin().key() == "integers" && content.is_array()) {
        std::vector<int64_t> items;
        for (const Json& item : content) items.push_back(integer(name, item));
        return items;
      }
      if (json.begin().key() == "reals" && content.is_array()) {
        std::vector<double> items;
        for (const Json& item : content)
          items.push_back(item.is_number_float() ? item.get<double>() : bits(name, item));
        return items;
      }
    }
    fail(name, "a value");
  }

 private:
  int64_t integer(const std::string& name, const Json& json) const {
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const bool fits = json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= most);
    if (!fits) fail(name, "an integer of 64 bits");
    return json.get<int64_t>();
  }

  double bits(const std::string& name, const Json& json) const {
    if (!json.is_string()) fail(name, "a real number");
    const auto& text = json.get_ref<const std::string&>();
    const auto value = whole_number<uint64_t>(text, 16);
    if (text.size() != 16 || !value) fail(name, "16 hexadecimal digits");
    return std::bit_cast<double>(*value);
  }

  [[noreturn]] void fail(const std::string& name, const char* expected) const {
    throw_error("{}: '{}': expected {}", path_, printable(name), expected);
  }

  const std::string& path_;
};

}  // namespace

std::string to_json(const State& state) {
  std::string text = "{";
  for (const auto& [name, value] : state.values())
    text += fmt::format("{}\n{}: {}", text.size() > 1 ? "," : "", quoted_json(name), std::visit(ValueText(), value));
  return text + "\n}\n";
}

State parse_state(std::string_view text, const std::string& path) {
  const Json json = parse_json(text, path, kDepth);
  if (!json.is_object()) throw_error("{}: expected a map of values", path);
  const StateReader reader(path);
  State state;
  for (const auto& [name, value] : json.items()) state.set(name, reader.value(name, value));
  return state;
}

}  // namespace lockstep

// std::from_chars does the conversion: exact and blind to the locale. What it reads differently from people (signs,
// leading zeros, hexadecimal, infinity) is decided here, before it sees the text.
#include "train/config_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return text;
}

size_t count_digits(std::string_view text, size_t from) {
  size_t end = from;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - from;
}

// [sign] (digits [. [digits]] | . digits) [(e|E) [sign] digits]
bool is_decimal(std::string_view signed_text) {
  const std::string_view text = without_sign(signed_text);
  const size_t whole = count_digits(text, 0);
  size_t at = whole;
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = count_digits(text, at + 1);
    at += 1 + fraction;
  }
  if (whole + fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t exponent = count_digits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

bool has_leading_zero(std::string_view text) {
  text = without_sign(text);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

bool is_infinity(std::string_view text) {
  const std::string_view word = without_sign(text);
  return word == "inf" || word == ".inf";
}

// What people write in other formats, and what to write here.
std::string hint(std::string_view text) {
  const std::string word = lower(without_sign(text));
  if (word == "nan" || word == ".nan") return "; nan is not a value";
  if (word == "inf" || word == ".inf") return "; infinity is not allowed here";
  if (word == "infinity" || word == ".infinity") return "; infinity is written inf";
  if (word.empty() || (!is_digit(word[0]) && word[0] != '.')) return "";
  if (word.size() > 1 && word[0] == '0' && (word[1] == 'x' || word[1] == 'o' || word[1] == 'b')) {
    return "; only decimal numbers are read";
  }
  if (has_leading_zero(word) && is_decimal(word)) {
    const size_t first = std::min(word.find_first_not_of('0'), word.size() - 1);
    const bool keep_zero = !is_digit(word[first]);  // 00.5 -> 0.5
    return fmt::format("; leading zeros are not read (octal elsewhere): write {}{}", text[0] == '-' ? "-" : "",
                       word.substr(keep_zero ? first - 1 : first));
  }
  if (word.find('_') != std::string::npos) {
    std::string plain(text);
    std::erase(plain, '_');
    return is_decimal(plain) ? fmt::format("; write {}", plain) : "";
  }
  if (std::count(word.begin(), word.end(), ',') == 1) {
    std::string plain(text);
    std::replace(plain.begin(), plain.end(), ',', '.');
    return is_decimal(plain) ? fmt::format("; write {}", plain) : "";
  }
  return "";
}

template <class Integer>
std::string parse_any_integer(std::string_view text, Integer& value) {
  const std::string_view digits = without_sign(text);
  const bool all_digits = !digits.empty() && count_digits(digits, 0) == digits.size();
  if (!all_digits || has_leading_zero(text)) {
    double number = 0;
    if (!has_leading_zero(text) && is_decimal(text) && parse_number(text, false, number).empty()) {
      constexpr double kExact = 9007199254740992.0;  // 2^53
      if (std::trunc(number) == number && std::fabs(number) <= kExact) {
        return fmt::format("expected an integer, found '{}'; an integer has digits only: write {}", printable(text),
                           static_cast<int64_t>(number));
      }
    }
    return fmt::format("expected an integer, found '{}'{}", printable(text), hint(text));
  }
  if (text[0] == '+') text.remove_prefix(1);
  if (std::is_unsigned_v<Integer> && text[0] == '-' && digits == "0") text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return "";
  return fmt::format("{} is out of range; expected an integer from {} to {}", printable(text),
                     std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max());
}

}  // namespace

std::string parse_integer(std::string_view text, int64_t& value) { return parse_any_integer(text, value); }
std::string parse_integer(std::string_view text, uint64_t& value) { return parse_any_integer(text, value); }

std::string parse_number(std::string_view text, bool allow_infinity, double& value) {
  if (allow_infinity && is_infinity(text)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    value = text[0] == '-' ? -kInfinity : kInfinity;
    return "";
  }
  if (!is_decimal(text) || has_leading_zero(text)) {
    return fmt::format("expected a number, found '{}'{}", printable(text), hint(text));
  }
  const std::string_view shown = text;
  if (text[0] == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return "";
  return fmt::format("{} is out of range of a double (about 4.9e-324 to 1.8e308)", printable(shown));
}

std::string parse_duration(std::string_view text, double& seconds) {
  constexpr std::pair<char, double> kUnits[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
  if (parse_number(text, false, seconds).empty()) return "";
  const auto refuse = [&] {
    return fmt::format("expected seconds or a duration such as 90, 1h30m or 2d, found '{}'{}", printable(text),
                       text.find(':') != std::string_view::npos ? "; write hours and minutes as 1h30m" : "");
  };
  double total = 0;
  const auto* unit = std::begin(kUnits);
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
    double number = 0;
    if (end == rest.size() || !parse_number(rest.substr(0, end), false, number).empty()) return refuse();
    unit = std::find_if(unit, std::end(kUnits), [&](const auto& entry) { return entry.first == rest[end]; });
    if (unit == std::end(kUnits)) return refuse();
    total += number * unit->second;
    ++unit;
    rest.remove_prefix(end + 1);
  }
  if (text.empty()) return refuse();
  seconds = total;
  return "";
}

std::string parse_boolean(std::string_view text, bool& value) {
  if (text == "true" || text == "false") {
    value = text == "true";
    return "";
  }
  const std::string word = lower(text);
  if (word == "true" || word == "false") return fmt::format("expected true or false, found '{}'; write {}", text, word);
  constexpr std::array<std::string_view, 5> kTrue{"yes", "y", "on", "1", "t"};
  constexpr std::array<std::string_view, 5> kFalse{"no", "n", "off", "0", "f"};
  const char* suggestion = "";
  if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) suggestion = "; write true or false";
  if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) suggestion = "; write true or false";
  return fmt::format("expected true or false, found '{}'{}", printable(text), suggestion);
}

std::string print_number(double value) {
  std::array<char, 64> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), result.ptr);
}

std::string print_text(std::string_view text) {
  const auto is_word = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '/';
  };
  const auto is_inner = [&](char c) { return is_word(c) || c == '-' || c == ' ' || c == '*' || c == '+'; };
  const bool plain = !text.empty() && is_word(text.front()) && text.back() != ' ' &&
                     std::all_of(text.begin(), text.end(), is_inner) && text != "null" && text != "Null" &&
                     text != "NULL";
  if (plain) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 60;
  std::string result(text.substr(0, kLongest));
  // Cut before a code point, not in it.
  if (text.size() > kLongest && (static_cast<unsigned char>(text[kLongest]) & 0xC0U) == 0x80U) {
    while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xC0U) == 0x80U) result.pop_back();
    if (!result.empty()) result.pop_back();
  }
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text.size() > kLongest ? result + "..." : result;
}

}  // namespace lockstep

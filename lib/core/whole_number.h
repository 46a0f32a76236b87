// Numbers in texts of which nothing may be left over: names, environment variables, answers of programs. What people
// write in a config is read with more patience by train/config_scalar.h.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace lockstep {

// nullopt: not a number, followed by something, or out of Integer's range. Signs and bounds are the caller's.
template <class Integer>
std::optional<Integer> whole_number(std::string_view text, int base = 10) {
  Integer value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace lockstep

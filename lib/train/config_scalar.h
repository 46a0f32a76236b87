// Scalars of the config file: text to value by the type that the key expects, never by YAML's own guess and never by
// the locale. Each parser returns an empty string, or what is wrong with the text and how to write it instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

// Digits with an optional sign, no leading zero, within the type's range; 1.0 and 1e3 are not integers.
std::string parse_integer(std::string_view text, int64_t& value);
std::string parse_integer(std::string_view text, uint64_t& value);
// 1, +1, -2.5, .001, 1e-3, 1.e-3, 1E-3; nan never, inf and -inf only with allow_infinity.
std::string parse_number(std::string_view text, bool allow_infinity, double& value);
// Seconds as a number, or counts of days, hours, minutes and seconds in this order: 90, 1h30m, 2d, 1.5h.
std::string parse_duration(std::string_view text, double& seconds);
// true or false, nothing else.
std::string parse_boolean(std::string_view text, bool& value);

// The shortest text that reads back as the same bits.
std::string print_number(double value);
// Plain where that is read back as the same text, else in double quotes.
std::string print_text(std::string_view text);
// For messages: at most 60 bytes, control characters replaced.
std::string printable(std::string_view text);

}  // namespace lockstep

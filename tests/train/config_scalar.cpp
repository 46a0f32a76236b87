// Which texts are integers, numbers and booleans, and what the others are told.
#include "train/config_scalar.h"

#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <random>

using namespace lockstep;

namespace {

double number(const std::string& text, bool allow_infinity = false) {
  double value = -12345;
  CHECK_EQ(parse_number(text, allow_infinity, value), "");
  return value;
}

std::string number_error(const std::string& text) {
  double value = 0;
  return parse_number(text, false, value);
}

int64_t integer(const std::string& text) {
  int64_t value = -12345;
  CHECK_EQ(parse_integer(text, value), "");
  return value;
}

std::string integer_error(const std::string& text) {
  int64_t value = 0;
  return parse_integer(text, value);
}

std::string boolean_error(const std::string& text) {
  bool value = false;
  return parse_boolean(text, value);
}

}  // namespace

TEST_CASE("numbers in every usual form have the same value") {
  for (const char* text : {"1e-3", "1.e-3", "1E-3", ".001", "0.001", "+.001", "+1e-3", "1e-03", "0.1e-2"}) {
    CAPTURE(text);
    CHECK_EQ(number(text), 0.001);
  }
  CHECK_EQ(number("+1"), 1);
  CHECK_EQ(number("-1"), -1);
  CHECK_EQ(number("1."), 1);
  CHECK_EQ(number("0"), 0);
  CHECK_EQ(number("1.7976931348623157e308"), std::numeric_limits<double>::max());
  CHECK_EQ(number("4.9406564584124654e-324"), std::numeric_limits<double>::denorm_min());
}

TEST_CASE("texts that are no numbers are named with a hint") {
  CHECK_EQ(number_error("abc"), "expected a number, found 'abc'");
  CHECK_EQ(number_error(""), "expected a number, found ''");
  CHECK_EQ(number_error("-"), "expected a number, found '-'");
  CHECK_EQ(number_error("."), "expected a number, found '.'");
  CHECK_EQ(number_error("1e"), "expected a number, found '1e'");
  CHECK_EQ(number_error("1 2"), "expected a number, found '1 2'");
  CHECK_EQ(number_error("++1"), "expected a number, found '++1'");
  CHECK_EQ(number_error("1f"), "expected a number, found '1f'");
  CHECK_EQ(number_error("0x1p3"), "expected a number, found '0x1p3'; only decimal numbers are read");
  CHECK_EQ(number_error("01.5"),
           "expected a number, found '01.5'; leading zeros are not read (octal elsewhere): write 1.5");
  CHECK_EQ(number_error("-00.5"),
           "expected a number, found '-00.5'; leading zeros are not read (octal elsewhere): write -0.5");
  CHECK_EQ(number_error("1_000.5"), "expected a number, found '1_000.5'; write 1000.5");
  CHECK_EQ(number_error("0,5"), "expected a number, found '0,5'; write 0.5");
  CHECK_EQ(number_error("1:30"), "expected a number, found '1:30'");
}

TEST_CASE("nan is never a number and infinity only where allowed") {
  for (const char* text : {"nan", ".nan", "NaN", "-nan"}) {
    CAPTURE(text);
    CHECK_EQ(number_error(text), std::string("expected a number, found '") + text + "'; nan is not a value");
  }
  CHECK_EQ(number_error("inf"), "expected a number, found 'inf'; infinity is not allowed here");
  CHECK_EQ(number_error("-.inf"), "expected a number, found '-.inf'; infinity is not allowed here");
  CHECK_EQ(number("inf", true), std::numeric_limits<double>::infinity());
  CHECK_EQ(number(".inf", true), std::numeric_limits<double>::infinity());
  CHECK_EQ(number("-inf", true), -std::numeric_limits<double>::infinity());
  double value = 0;
  CHECK_EQ(parse_number("Infinity", true, value), "expected a number, found 'Infinity'; infinity is written inf");
  CHECK_EQ(parse_number("nan", true, value), "expected a number, found 'nan'; nan is not a value");
}

TEST_CASE("numbers that no double holds are out of range") {
  CHECK_EQ(number_error("1e400"), "1e400 is out of range of a double (about 4.9e-324 to 1.8e308)");
  CHECK_EQ(number_error("-1e400"), "-1e400 is out of range of a double (about 4.9e-324 to 1.8e308)");
  CHECK_EQ(number_error("+1e-400"), "+1e-400 is out of range of a double (about 4.9e-324 to 1.8e308)");
  CHECK_EQ(number("0e400"), 0);
}

TEST_CASE("integers are digits with an optional sign") {
  CHECK_EQ(integer("0"), 0);
  CHECK_EQ(integer("-0"), 0);
  CHECK_EQ(integer("+7"), 7);
  CHECK_EQ(integer("-100"), -100);
  CHECK_EQ(integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  CHECK_EQ(integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
}

TEST_CASE("integers in other forms are refused with a hint") {
  CHECK_EQ(integer_error("1.0"), "expected an integer, found '1.0'; an integer has digits only: write 1");
  CHECK_EQ(integer_error("1e3"), "expected an integer, found '1e3'; an integer has digits only: write 1000");
  CHECK_EQ(integer_error("-2."), "expected an integer, found '-2.'; an integer has digits only: write -2");
  CHECK_EQ(integer_error("1.5"), "expected an integer, found '1.5'");
  CHECK_EQ(integer_error("010"),
           "expected an integer, found '010'; leading zeros are not read (octal elsewhere): write 10");
  CHECK_EQ(integer_error("-007"),
           "expected an integer, found '-007'; leading zeros are not read (octal elsewhere): write -7");
  CHECK_EQ(integer_error("00"),
           "expected an integer, found '00'; leading zeros are not read (octal elsewhere): write 0");
  CHECK_EQ(integer_error("0x10"), "expected an integer, found '0x10'; only decimal numbers are read");
  CHECK_EQ(integer_error("0o17"), "expected an integer, found '0o17'; only decimal numbers are read");
  CHECK_EQ(integer_error("1_000"), "expected an integer, found '1_000'; write 1000");
  CHECK_EQ(integer_error("true"), "expected an integer, found 'true'");
  CHECK_EQ(integer_error("nan"), "expected an integer, found 'nan'; nan is not a value");
}

TEST_CASE("integers over 64 bits are out of range") {
  CHECK_EQ(integer_error("9223372036854775808"),
           "9223372036854775808 is out of range; expected an integer from -9223372036854775808 to 9223372036854775807");
  uint64_t seed = 0;
  CHECK_EQ(parse_integer("18446744073709551615", seed), "");
  CHECK_EQ(seed, std::numeric_limits<uint64_t>::max());
  CHECK_EQ(parse_integer("-0", seed), "");
  CHECK_EQ(parse_integer("-1", seed), "-1 is out of range; expected an integer from 0 to 18446744073709551615");
  CHECK_EQ(parse_integer("18446744073709551616", seed),
           "18446744073709551616 is out of range; expected an integer from 0 to 18446744073709551615");
}

TEST_CASE("booleans are true and false only") {
  bool value = false;
  CHECK_EQ(parse_boolean("true", value), "");
  CHECK(value);
  CHECK_EQ(parse_boolean("false", value), "");
  CHECK_FALSE(value);
  for (const char* text : {"yes", "no", "on", "off", "Yes", "NO", "y", "n", "1", "0"}) {
    CAPTURE(text);
    CHECK_EQ(boolean_error(text), std::string("expected true or false, found '") + text + "'; write true or false");
  }
  CHECK_EQ(boolean_error("True"), "expected true or false, found 'True'; write true");
  CHECK_EQ(boolean_error("FALSE"), "expected true or false, found 'FALSE'; write false");
  CHECK_EQ(boolean_error("maybe"), "expected true or false, found 'maybe'");
}

TEST_CASE("printed numbers read back as the same bits") {
  std::mt19937_64 engine(7);
  for (int i = 0; i < 2000; ++i) {
    const auto value = std::bit_cast<double>(engine());
    if (!(value - value == 0)) continue;  // nan or infinite
    CHECK_EQ(std::bit_cast<uint64_t>(number(print_number(value))), std::bit_cast<uint64_t>(value));
  }
  CHECK_EQ(print_number(0.1), "0.1");
  CHECK_EQ(print_number(std::numeric_limits<double>::infinity()), "inf");
}

TEST_CASE("texts are quoted where plain text would read as something else") {
  CHECK_EQ(print_text("runs/mnist-2.gz"), "runs/mnist-2.gz");
  CHECK_EQ(print_text("1 epoch"), "1 epoch");
  CHECK_EQ(print_text("yes"), "yes");  // a text key takes it as text
  CHECK_EQ(print_text(""), "\"\"");
  CHECK_EQ(print_text("null"), "\"null\"");
  CHECK_EQ(print_text("a: b"), "\"a: b\"");
  CHECK_EQ(print_text("- a"), "\"- a\"");
  CHECK_EQ(print_text("[1"), "\"[1\"");
  CHECK_EQ(print_text("a\"\\b"), "\"a\\\"\\\\b\"");
}

TEST_CASE("shown text is short and has no control characters") {
  CHECK_EQ(printable("a\nb\x1b[31m"), "a b [31m");
  CHECK_EQ(printable(std::string(100, 'x')), std::string(60, 'x') + "...");
  CHECK_EQ(printable(std::string(59, 'x') + "\xC3\xA4 and more"), std::string(59, 'x') + "...");
}

TEST_CASE("durations are seconds or counts of units from large to small") {
  const std::pair<const char*, double> durations[] = {
      {"90", 90},     {"0.5", 0.5}, {"1e3", 1000},           {"1h30m", 5400}, {"2d", 172800},
      {"1.5h", 5400}, {"45s", 45},  {"1d2h3m4.5s", 93784.5}, {"1d1s", 86401}};
  for (const auto& [text, expected] : durations) {
    CAPTURE(text);
    double seconds = -1;
    CHECK_EQ(parse_duration(text, seconds), "");
    CHECK_EQ(seconds, expected);
  }
  double seconds = 0;
  CHECK_EQ(parse_duration("1:30:00", seconds),
           "expected seconds or a duration such as 90, 1h30m or 2d, found '1:30:00'; write hours and minutes as 1h30m");
  for (const char* text :
       {"", "h", "30m1h", "1h1h", "1h30", "5 m", "-1h", "1w", "01h", "1..5h", "nan", "inf", "1h-5m"}) {
    CAPTURE(text);
    CHECK_NE(parse_duration(text, seconds), "");
  }
}

// State as JSON, a value a line, sorted by name: the same state gives the same bytes. true, 3, 0.5 and "text" stand for
// themselves (a real always has a point or an exponent); lists say what they hold: {"integers": [1, 2]}, {"reals":
// [0.5]}. Reals that JSON cannot say, or that a processor may flush to 0 on the way (NaN, infinities, subnormals), are
// their 64 bits in hexadecimal: {"bits": "7ff8000000000000"}, in a list just the text.
#pragma once

#include <string>
#include <string_view>

#include "core/state.h"

namespace lockstep {

std::string to_json(const State& state);  // Error: a name or text that is not UTF-8
// Error, naming `path`: anything that to_json would not have written, white space aside.
State parse_state(std::string_view text, const std::string& path);

}  // namespace lockstep

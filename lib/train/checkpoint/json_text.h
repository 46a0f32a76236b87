// JSON from and to text, stricter than the library: a key twice and deep nesting are errors, and so is what is no
// UTF-8.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockstep {

// Error, naming `path`: not JSON, a key of a map twice, maps and lists more than `most_deep` deep.
nlohmann::json parse_json(std::string_view text, const std::string& path, int most_deep);
std::string quoted_json(const std::string& text);  // Error: not UTF-8

}  // namespace lockstep

// "did you mean": the nearest known words to one that isn't known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Edits (insert, delete, replace, swap of neighbours) from a to b; case and - against _ count nothing.
int edit_distance(std::string_view a, std::string_view b);
// Largest distance at which `word` still counts as a slip of another one.
int slip_limit(std::string_view word);
// The nearest candidate within the slip limit, else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// "; did you mean 'adam'?", or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator);

}  // namespace lockstep

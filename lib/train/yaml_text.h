// Checks of the raw text before the parser sees it: what yaml-cpp would silently replace, cut off or misplace.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

// Throws Error with the position of: a byte that is not UTF-8, a control character, a tab in the indentation.
// `positions` false (text of an override): the source alone stands in front of the message.
void check_yaml_text(std::string_view text, const std::shared_ptr<const std::string>& source, bool positions);

}  // namespace lockstep

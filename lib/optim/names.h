// The message for a name that a table does not have: lists what it has and the nearest.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// Throws Error("{key}: unknown name 'adm', did you mean adam? Known: sgd, adam, ..."). `known` is not empty.
[[noreturn]] void throw_unknown_name(std::string_view key, std::string_view name, std::span<const std::string> known);

}  // namespace lockstep

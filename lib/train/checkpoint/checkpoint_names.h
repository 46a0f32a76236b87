// The names in a folder of checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// While one is written, replaced or removed its directory has one of these behind its name.
inline constexpr std::string_view kGrowing = ".tmp", kAside = ".old", kGoing = ".gone";
inline constexpr const char *kLast = "last", *kBest = "best";
inline constexpr const char *kStateName = "state.json", *kConfigName = "config.yaml";
inline constexpr std::string_view kTensorSuffix = ".safetensors";

std::string step_name(int64_t step);                    // "step-000000500"
std::optional<int64_t> step_of(std::string_view name);  // of exactly such a name
std::optional<int64_t> step_in_pointer(
    std::string_view text);  // of what `last` or `best` holds: the name and a line end

}  // namespace lockstep

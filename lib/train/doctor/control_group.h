// The memory that the control groups of this process allow, of version 1 or 2. root: where /proc and /sys are, for
// tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lockstep {

// The lowest limit; empty: none.
std::optional<uint64_t> control_group_limit(const std::filesystem::path& root = "/");
// What may still be taken below each of their limits, the least of it; pages of files count as free. Empty: no limit.
std::optional<uint64_t> control_group_free(const std::filesystem::path& root = "/");

}  // namespace lockstep

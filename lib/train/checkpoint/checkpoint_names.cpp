#include "train/checkpoint/checkpoint_names.h"

#include <fmt/format.h>

#include <charconv>

namespace lockstep {

std::string step_name(int64_t step) { return fmt::format("step-{:09}", step); }

std::optional<int64_t> step_of(std::string_view name) {
  constexpr std::string_view start = "step-";
  if (!name.starts_with(start)) return std::nullopt;
  int64_t step = 0;
  const std::string_view digits = name.substr(start.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

std::optional<int64_t> step_in_pointer(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  return step_of(text.substr(0, text.size() - 1));
}

}  // namespace lockstep

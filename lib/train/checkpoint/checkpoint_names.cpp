#include "train/checkpoint/checkpoint_names.h"

#include <fmt/format.h>

#include "core/whole_number.h"

namespace lockstep {

std::string step_name(int64_t step) { return fmt::format("step-{:09}", step); }

std::optional<int64_t> step_of(std::string_view name) {
  constexpr std::string_view start = "step-";
  if (!name.starts_with(start)) return std::nullopt;
  const auto step = whole_number<int64_t>(name.substr(start.size()));
  if (!step || *step < 0 || step_name(*step) != name) return std::nullopt;
  return step;
}

std::optional<int64_t> step_in_pointer(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  return step_of(text.substr(0, text.size() - 1));
}

}  // namespace lockstep

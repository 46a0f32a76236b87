// Checks and descriptions of rules.
#include "train/config_rule.h"

#include <cmath>
#include <utility>

#include "train/config_scalar.h"
#include "train/config_suggest.h"

namespace lockstep {

bool Rule::contains(long double value) const {
  if (low_open ? value <= low : value < low) return false;
  return high_open ? value < high : value <= high;
}

std::string Rule::describe() const {
  if (!choices.empty()) return join(choices, " | ");
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  std::string text;
  if (has_low && has_high) {
    text = print_number(low) + (low_open ? " < x" : " <= x") + (high_open ? " < " : " <= ") + print_number(high);
  } else if (has_low) {
    text = (low_open ? "> " : ">= ") + print_number(low);
  } else if (has_high) {
    text = (high_open ? "< " : "<= ") + print_number(high);
  }
  return infinity ? text + (text.empty() ? "inf allowed" : ", inf allowed") : text;
}

Rule Rule::with_infinity() const {
  Rule rule = *this;
  rule.infinity = true;
  return rule;
}
Rule Rule::bare_steps() const {
  Rule rule = *this;
  rule.bare_is_steps = true;
  return rule;
}

Rule Rule::or_empty() const {
  Rule rule = *this;
  rule.may_be_empty = true;
  return rule;
}
Rule Rule::items(size_t least, size_t most) const {
  Rule rule = *this;
  rule.least_items = least;
  rule.most_items = most;
  return rule;
}

Rule anything() { return {}; }
Rule at_least(double low) {
  Rule rule;
  rule.low = low;
  return rule;
}
Rule above(double low) {
  Rule rule = at_least(low);
  rule.low_open = true;
  return rule;
}
Rule between(double low, double high) {
  Rule rule = at_least(low);
  rule.high = high;
  return rule;
}
Rule from_up_to(double low, double high) {
  Rule rule = between(low, high);
  rule.high_open = true;
  return rule;
}
Rule one_of(std::vector<std::string> choices) {
  Rule rule;
  rule.choices = std::move(choices);
  return rule;
}

}  // namespace lockstep

// What a key accepts beyond its type: bounds, choices, number of items. One description serves messages and docs.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace lockstep {

struct Rule {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  // the bound itself is out of range
  bool infinity = false;                     // inf is a value
  bool may_be_empty = false;                 // texts
  bool bare_is_steps = false;                // periods: 500 is '500 steps'
  size_t least_items = 0;                    // lists
  size_t most_items = 65536;
  std::vector<std::string> choices;  // texts

  bool contains(long double value) const;
  std::string describe() const;  // ">= 1", "0 <= x < 1", "adam | sgd"; empty where anything goes

  Rule with_infinity() const;
  Rule or_empty() const;
  Rule bare_steps() const;
  Rule items(size_t least, size_t most = 65536) const;
};

Rule anything();
Rule at_least(double low);
Rule above(double low);
Rule between(double low, double high);     // both included
Rule from_up_to(double low, double high);  // high excluded
Rule one_of(std::vector<std::string> choices);

}  // namespace lockstep

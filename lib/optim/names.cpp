#include "optim/names.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace lockstep {

static size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

void throw_unknown_name(std::string_view key, std::string_view name, std::span<const std::string> known) {
  name = name.substr(0, 100);
  const std::string* nearest = &known[0];
  std::string list;
  for (const std::string& candidate : known) {
    if (edit_distance(name, candidate) < edit_distance(name, *nearest)) nearest = &candidate;
    list += (list.empty() ? "" : ", ") + candidate;
  }
  throw_error("{}: unknown name '{}', did you mean {}? Known: {}", key, name, *nearest, list);
}

}  // namespace lockstep

// "did you mean" over the whole table: a slip within the section first, then the same word in another section.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "train/config_layers.h"
#include "train/config_schema.h"
#include "train/config_suggest.h"

namespace lockstep {
namespace {

int distance(const Key& key, std::string_view word) {
  int best = edit_distance(word, key.name);
  for (const std::string& synonym : key.synonyms) best = std::min(best, edit_distance(word, synonym));
  return best;
}

// The nearest keys of other sections, of those the least deep.
struct Elsewhere {
  int distance = 1 << 20;
  size_t depth = 0;
  std::vector<std::string> paths;
};

// A schema that occurs twice (data.train and data.val) is looked at once.
void look_in(const Schema& schema, const std::string& path, const Schema& own, std::string_view word,
             std::set<const Schema*>& seen, Elsewhere& best) {
  if (!seen.insert(&schema).second) return;
  for (const Key& key : schema.keys) {
    const std::string key_path = join_path(path, key.name);
    if (&schema != &own) {
      const int found = distance(key, word);
      const auto depth = static_cast<size_t>(std::count(key_path.begin(), key_path.end(), '.'));
      if (found < best.distance || (found == best.distance && depth < best.depth)) best = {found, depth, {}};
      if (found == best.distance && depth == best.depth) best.paths.push_back(key_path);
    }
    if (key.child != nullptr) look_in(key.child(), key_path, own, word, seen, best);
  }
}

}  // namespace

std::string suggest_key(const Schema& schema, std::string_view unknown) {
  const int limit = slip_limit(unknown);
  const Key* own = nullptr;
  int own_distance = limit + 1;
  for (const Key& key : schema.keys) {
    const int found = distance(key, unknown);
    if (found < own_distance) {
      own_distance = found;
      own = &key;
    }
  }
  Elsewhere elsewhere;
  std::set<const Schema*> seen;
  look_in(root_schema(), "", schema, unknown, seen, elsewhere);
  for (const LayerKind& kind : layer_kinds_table()) {
    look_in(kind.schema, "model.layers." + kind.name, schema, unknown, seen, elsewhere);
  }
  if (own != nullptr && own_distance <= elsewhere.distance) return fmt::format("; did you mean '{}'?", own->name);
  if (elsewhere.distance <= limit) {
    constexpr size_t kMost = 3;
    elsewhere.paths.resize(std::min(kMost, elsewhere.paths.size()));
    return fmt::format("; did you mean {}?", join(elsewhere.paths, " or "));
  }
  std::vector<std::string> names;
  for (const Key& key : schema.keys) names.push_back(key.name);
  return names.empty() ? "; it has no keys" : "; known keys: " + join(names, ", ");
}

}  // namespace lockstep

#include "data/factory.h"

#include <array>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "data/csv.h"
#include "data/idx.h"
#include "data/npy.h"
#include "data/synthetic.h"

namespace lockstep {

namespace {

struct Source {
  const DatasetSettings& settings;
  int rank;
  Generator* generator;  // null: a synthetic set makes its own from its seed
};

std::unique_ptr<Dataset> from_idx(const Source& source) { return make_idx(source.settings); }
std::unique_ptr<Dataset> from_csv(const Source& source) { return make_csv(source.settings); }
std::unique_ptr<Dataset> from_npy(const Source& source) { return make_npy(source.settings); }
std::unique_ptr<Dataset> from_formula(const Source& source) {
  return source.generator != nullptr ? make_synthetic(source.settings, *source.generator)
                                     : make_synthetic(source.settings, source.rank);
}

struct Kind {
  std::string_view name;
  std::unique_ptr<Dataset> (*make)(const Source&);
};
constexpr std::array<Kind, 5> kKinds{{{"idx", from_idx},
                                      {"csv", from_csv},
                                      {"npy", from_npy},
                                      {"synthetic", from_formula},
                                      {"toy", from_formula}}};  // synthetic, for the names that start with toy

std::unique_ptr<Dataset> make_whole(const Source& source) {
  for (const Kind& kind : kKinds) {
    if (kind.name != source.settings.kind) continue;
    if (source.settings.seed_per_rank && kind.make != from_formula) {
      throw_error("seed_per_rank: every rank reads the same files, found it with kind {}", kind.name);
    }
    return kind.make(source);
  }
  throw_error("kind: expected one of {}, found '{}'", fmt::join(dataset_kinds(), ", "), source.settings.kind);
}

std::unique_ptr<Dataset> make(const Source& source) {
  const DatasetSettings& settings = source.settings;
  std::unique_ptr<Dataset> whole = make_whole(source);
  if (settings.first == 0 && settings.count == -1) return whole;
  const int64_t size = whole->size();
  if (settings.first < 0 || settings.first >= size || settings.count == 0 || settings.count < -1 ||
      settings.count > size - settings.first) {
    throw_error("first and count: expected rows within the {} samples, and at least one, found first {} count {}", size,
                settings.first, settings.count);
  }
  return std::make_unique<Subset>(std::move(whole), settings.first,
                                  settings.count == -1 ? size - settings.first : settings.count);
}

std::unique_ptr<Dataset> make_located(const DatasetSettings& settings, int rank, Generator* generator) {
  const std::string where = settings.where.empty() ? "" : settings.where + ": ";
  DatasetSettings completed = settings;
  if (settings.kind == "toy" && settings.name.empty()) completed.name = "toy_train";
  try {
    return make({completed, rank, generator});
  } catch (const Error& error) {
    throw Error(where + error.what());
  } catch (const std::bad_alloc&) {
    throw Error(where + "the data set does not fit into memory");
  } catch (const std::length_error&) {  // a vector's way to say the same
    throw Error(where + "the data set does not fit into memory");
  }
}

}  // namespace

std::vector<std::string> dataset_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<Dataset> make_dataset(const DatasetSettings& settings, int rank) {
  return make_located(settings, rank, nullptr);
}

std::unique_ptr<Dataset> make_dataset(const DatasetSettings& settings, int rank, Generator& generator) {
  return make_located(settings, rank, &generator);
}

}  // namespace lockstep

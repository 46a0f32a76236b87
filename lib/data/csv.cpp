#include "data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/csv_reader.h"
#include "data/memory_dataset.h"

namespace lockstep {

namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <class T>
bool parse(std::string_view text, T& value) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool is_number(const CsvCell& cell) {
  double value = 0;
  return parse(cell.text, value);
}

// Whether the first row names the columns. A row with names and numbers is neither: only the user can tell.
bool is_header(std::span<const CsvCell> row, const CsvReader& reader, const std::optional<bool>& said) {
  if (said) return *said;
  const auto numbers = std::count_if(row.begin(), row.end(), is_number);
  if (numbers != 0 && numbers != static_cast<std::ptrdiff_t>(row.size())) {
    const auto& odd = *std::find_if_not(row.begin(), row.end(), is_number);
    throw_error("{}: expected a row of numbers or a row of names, found both ('{}'): set header to true or false",
                reader.place(odd), odd.text);
  }
  return numbers == 0;
}

// Which columns to read, settled by the first row.
class Columns {
 public:
  Columns(std::span<const CsvCell> first, bool header, const DatasetSettings& settings, const std::string& path)
      : count(first.size()), path_(path) {
    for (const CsvCell& cell : first) names_.push_back(header ? std::string(trimmed(cell.text)) : "");
    const bool alone = settings.targets == WantedTargets::none;
    if (count < 2 && !alone) throw_error("{}: expected at least 2 columns separated by commas, found {}", path, count);
    target = alone ? unwanted_target(settings) : settings.target.empty() ? count - 1 : find(settings.target);
    for (const std::string& feature : settings.features) {
      features.push_back(find(feature));
      if (features.back() == target) throw_error("{}: column '{}' is both a feature and the target", path, feature);
      if (std::count(features.begin(), features.end(), features.back()) > 1) {
        throw_error("{}: feature '{}' is given twice", path, feature);
      }
    }
    for (size_t column = 0; settings.features.empty() && column < count; ++column) {
      if (column != target) features.push_back(column);
    }
  }
  std::string describe(size_t column) const {
    return names_[column].empty() ? fmt::format("column {}", column) : fmt::format("column '{}'", names_[column]);
  }

  size_t count, target = 0;  // target: count where there is none
  std::vector<size_t> features;

 private:
  // Samples alone may still come with the target's column, under its name or as one column more than a sample has.
  size_t unwanted_target(const DatasetSettings& settings) const {
    const auto named = std::find(names_.begin(), names_.end(), settings.target);
    if (!settings.target.empty() && named != names_.end()) return static_cast<size_t>(named - names_.begin());
    const bool one_more =
        settings.features.empty() && settings.shape.size() == 1 && static_cast<int64_t>(count) == settings.shape[0] + 1;
    if (!one_more) return count;
    return settings.target.empty() ? count - 1 : find(settings.target);
  }
  size_t find(const std::string& wanted) const {
    const auto named = std::find(names_.begin(), names_.end(), wanted);
    if (named != names_.end()) {
      if (std::find(named + 1, names_.end(), wanted) != names_.end())
        throw_error("{}: two columns are named '{}'", path_, wanted);
      return static_cast<size_t>(named - names_.begin());
    }
    size_t index = 0;
    if (parse(wanted, index) && index < count) return index;
    const std::vector<std::string> shown(names_.begin(),
                                         names_.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(count, 20)));
    throw_error("{}: no column '{}': expected an index below {}{}", path_, wanted, count,
                names_[0].empty() ? "" : fmt::format(" or one of the names {}", fmt::join(shown, ", ")));
  }
  const std::string& path_;
  std::vector<std::string> names_;
};

struct Table {
  std::vector<float> x, values;
  std::vector<int64_t> labels;
  bool as_labels = false;  // decided so far: labels stay labels until a target is no integer
};

double number(const CsvCell& cell, const CsvReader& reader, const Columns& columns, size_t column) {
  double value = 0;
  if (!parse(cell.text, value)) {
    throw_error("{}: expected a number in {}, found '{}'", reader.place(cell), columns.describe(column), cell.text);
  }
  return value;
}

void add_target(Table& table, const CsvCell& cell, const CsvReader& reader, const Columns& columns,
                const DatasetSettings& settings) {
  const bool must = settings.targets == WantedTargets::labels || (settings.classes > 0 && table.as_labels);
  int64_t label = 0;
  if (table.as_labels && parse(cell.text, label)) {
    if (must && (label < 0 || (settings.classes > 0 && label >= settings.classes))) {
      throw_error("{}: label: expected {}, found {}", reader.place(cell),
                  settings.classes > 0 ? fmt::format("0 to {}", settings.classes - 1) : "0 or more", label);
    }
    table.labels.push_back(label);
  } else if (must) {
    throw_error("{}: expected an integer class label in {}, found '{}'", reader.place(cell),
                columns.describe(columns.target), cell.text);
  } else {
    table.as_labels = false;
  }
  table.values.push_back(static_cast<float>(number(cell, reader, columns, columns.target)));
}

}  // namespace

std::unique_ptr<Dataset> make_csv(const DatasetSettings& settings) {
  if (settings.file.empty()) throw_error("kind csv: expected the key file");
  const Normalization normalization(settings);
  CsvReader reader(settings.file);
  std::span<const CsvCell> row = reader.next();
  if (row.empty()) throw_error("{}: expected rows, found blank lines only", settings.file);
  const bool header = is_header(row, reader, settings.header);
  const Columns columns(row, header, settings, settings.file);
  if (header) row = reader.next();
  if (row.empty()) throw_error("{}: expected rows below the header, found none", settings.file);

  Table table;
  int64_t rows = 0;
  table.as_labels = settings.targets != WantedTargets::values;
  for (; !row.empty(); row = reader.next()) {
    if (row.size() != columns.count) {
      throw_error("{}: expected {} cells, found {}", reader.place(row[0]), columns.count, row.size());
    }
    for (size_t column : columns.features) {
      table.x.push_back(static_cast<float>(number(row[column], reader, columns, column)));
    }
    if (settings.targets != WantedTargets::none) add_target(table, row[columns.target], reader, columns, settings);
    ++rows;
  }
  Targets targets = settings.targets == WantedTargets::none ? Targets::none(rows)
                    : table.as_labels ? Targets::of_labels(std::move(table.labels), settings.classes, settings.file)
                                      : Targets::of_values(std::move(table.values), 1);
  const Shape sample{static_cast<int64_t>(columns.features.size())};
  return std::make_unique<FloatDataset>(std::move(table.x), sample, std::move(targets), normalization, settings.file);
}

}  // namespace lockstep

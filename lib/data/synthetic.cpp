#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "data/input_file.h"
#include "data/memory_dataset.h"
#include "data/toy.h"

namespace lockstep {

namespace {

constexpr int64_t kMaxExactFloat = 1 << 24;  // row numbers up to here are exact as float

std::vector<float> randn(int64_t rows, int64_t columns, Generator& generator) {
  std::vector<float> out(checked_product(static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), "samples"));
  generator.normal(out);
  return out;
}

int64_t samples_of(const DatasetSettings& settings) {
  if (settings.samples < 1) throw_error("{}: samples: expected 1 or more, found {}", settings.name, settings.samples);
  return settings.samples;
}

Shape shape_of(const DatasetSettings& settings) {
  const Shape shape(settings.shape);
  if (shape.rank() == 0 || shape.rank() >= Shape::kMaxRank || shape.numel() == 0) {
    throw_error("{}: shape: expected the shape of a sample, like [8] or [1, 28, 28], found {}", settings.name,
                shape.str());
  }
  return shape;
}

int64_t classes_of(const DatasetSettings& settings) {
  if (settings.classes < 2) throw_error("{}: classes: expected 2 or more, found {}", settings.name, settings.classes);
  return settings.classes;
}

std::unique_ptr<Dataset> finish(const DatasetSettings& settings, std::vector<float> x, const Shape& shape,
                                Targets targets) {
  return std::make_unique<FloatDataset>(std::move(x), shape, std::move(targets).wanted(settings.targets, settings.name),
                                        Normalization(settings), settings.name);
}

std::unique_ptr<Dataset> make_teacher(const DatasetSettings& settings, Generator& generator) {
  const int64_t samples = samples_of(settings), classes = classes_of(settings);
  const Shape shape = shape_of(settings);
  const int64_t features = shape.numel();
  std::vector<float> x = randn(samples, features, generator);
  const std::vector<float> teacher = randn(features, classes, generator);
  std::vector<int64_t> labels;
  std::vector<double> scores(static_cast<size_t>(classes));
  for (int64_t row = 0; row < samples; ++row) {
    std::fill(scores.begin(), scores.end(), 0.0);
    for (int64_t k = 0; k < features; ++k) {
      const double value = x[static_cast<size_t>(row * features + k)];
      for (int64_t c = 0; c < classes; ++c) {
        scores[static_cast<size_t>(c)] += value * teacher[static_cast<size_t>(k * classes + c)];
      }
    }
    labels.push_back(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  return finish(settings, std::move(x), shape, Targets::of_labels(std::move(labels), classes, settings.name));
}

std::unique_ptr<Dataset> make_normal_regression(const DatasetSettings& settings, Generator& generator) {
  const Shape shape = shape_of(settings);
  const int64_t samples = samples_of(settings), width = settings.target_width;
  if (width < 1) throw_error("{}: target_width: expected 1 or more, found {}", settings.name, width);
  std::vector<float> x = randn(samples, shape.numel(), generator);
  std::vector<float> y = randn(samples, width, generator);
  return finish(settings, std::move(x), shape, Targets::of_values(std::move(y), width));
}

std::unique_ptr<Dataset> make_random(const DatasetSettings& settings, Generator& generator) {
  const int64_t samples = samples_of(settings), classes = classes_of(settings);
  const Shape shape = shape_of(settings);
  std::vector<float> x = randn(samples, shape.numel(), generator);
  std::vector<int64_t> labels(static_cast<size_t>(samples));
  for (int64_t& label : labels) label = generator.randint(0, classes);
  return finish(settings, std::move(x), shape, Targets::of_labels(std::move(labels), classes, settings.name));
}

// One feature per sample; targets are `values` over and over: labels when classes is given, real numbers otherwise.
std::unique_ptr<Dataset> make_listed(const DatasetSettings& settings, bool row_number) {
  const int64_t samples = settings.samples > 0 ? settings.samples : static_cast<int64_t>(settings.values.size());
  if (samples < 1 || samples > kMaxExactFloat || (!row_number && settings.values.empty())) {
    throw_error("{}: expected values, or samples from 1 to {}, found {} values and samples {}", settings.name,
                kMaxExactFloat, settings.values.size(), settings.samples);
  }
  std::vector<float> x, values;
  std::vector<int64_t> labels;
  for (int64_t row = 0; row < samples; ++row) {
    x.push_back(row_number ? static_cast<float>(row) : 1.0F);
    const double value = settings.values.empty() ? static_cast<double>(row)
                                                 : settings.values[static_cast<size_t>(row) % settings.values.size()];
    values.push_back(static_cast<float>(value));
    if (settings.classes > 0 && (value != std::floor(value) || std::fabs(value) > kMaxExactFloat)) {
      throw_error("{}: values: expected integer class labels, found {}", settings.name, value);
    }
    if (settings.classes > 0) labels.push_back(static_cast<int64_t>(value));
  }
  Targets targets = settings.classes > 0 ? Targets::of_labels(std::move(labels), settings.classes, settings.name)
                                         : Targets::of_values(std::move(values), 1);
  return finish(settings, std::move(x), Shape{1}, std::move(targets));
}

std::unique_ptr<Dataset> make_identity(const DatasetSettings& settings, Generator&) {
  return make_listed(settings, true);
}
std::unique_ptr<Dataset> make_constant(const DatasetSettings& settings, Generator&) {
  return make_listed(settings, false);
}

struct Entry {
  std::string_view name;
  std::unique_ptr<Dataset> (*make)(const DatasetSettings&, Generator&);
};
constexpr std::array<Entry, 8> kEntries{{{"toy_train", make_toy_train},
                                         {"toy_test", make_toy_test},
                                         {"toy16", make_toy16},
                                         {"teacher", make_teacher},
                                         {"normal_regression", make_normal_regression},
                                         {"random", make_random},
                                         {"identity", make_identity},
                                         {"constant", make_constant}}};

bool augmented(const DatasetSettings& settings) {
  return settings.augment > 1 && (settings.name == "toy_train" || settings.name == "toy_test");
}

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Dataset> make_synthetic(const DatasetSettings& settings, Generator& generator) {
  for (const Entry& entry : kEntries) {
    if (entry.name != settings.name) continue;
    if (settings.augment != 1 && !settings.name.starts_with("toy_")) {
      throw_error("augment: only for toy_train and toy_test, found it with {}", settings.name);
    }
    std::unique_ptr<Dataset> made = entry.make(settings, generator);
    if (settings.seed_per_rank) made->mark_per_rank();
    return made;
  }
  throw_error("name: expected one of {}, found '{}'", fmt::join(synthetic_names(), ", "), settings.name);
}

std::unique_ptr<Dataset> make_synthetic(const DatasetSettings& settings, int rank) {
  Generator generator(settings.seed + (settings.seed_per_rank ? static_cast<uint64_t>(rank) : 0));
  if (augmented(settings) && settings.name == "toy_test") skip_toy_train(settings, generator);
  return make_synthetic(settings, generator);
}

uint64_t script_words(const DatasetSettings& settings) {
  if (!augmented(settings)) return 0;
  // randn of 10 or 4 values: Box-Muller pairs of doubles, four words a pair, none left over.
  const uint64_t pairs = settings.name == "toy_train" ? 5 : 2;
  return static_cast<uint64_t>(settings.augment) * pairs * 4;
}

}  // namespace lockstep

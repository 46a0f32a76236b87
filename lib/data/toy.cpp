#include "data/toy.h"

#include <array>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/memory_dataset.h"

namespace lockstep {

namespace {

// S. Raschka, "Build a Large Language Model (From Scratch)", appendix A.
constexpr std::array<float, 10> kTrainPoints{-1.2F, 3.1F, -0.9F, 2.9F, -0.5F, 2.6F, 2.3F, -1.1F, 2.7F, -1.5F};
constexpr std::array<int64_t, 5> kTrainLabels{0, 0, 0, 1, 1};
constexpr std::array<float, 4> kTestPoints{-0.8F, 2.8F, 2.6F, -1.6F};
constexpr std::array<int64_t, 2> kTestLabels{0, 1};
constexpr int64_t kMaxAugment = 1 << 20;

// cat([X + randn_like(X) * 0.1 for _ in range(augment)]), y.repeat(augment)
std::unique_ptr<Dataset> points(const DatasetSettings& settings, Generator& generator, std::span<const float> x,
                                std::span<const int64_t> labels) {
  if (settings.augment < 1 || settings.augment > kMaxAugment) {
    throw_error("augment: expected 1 to {}, found {}", kMaxAugment, settings.augment);
  }
  std::vector<float> all, noise(x.size(), 0.0F);
  std::vector<int64_t> all_labels;
  for (int64_t copy = 0; copy < settings.augment; ++copy) {
    if (settings.augment > 1) generator.normal(noise);
    for (size_t i = 0; i < x.size(); ++i) all.push_back(x[i] + noise[i] * 0.1F);
    all_labels.insert(all_labels.end(), labels.begin(), labels.end());
  }
  return std::make_unique<FloatDataset>(
      std::move(all), Shape{2},
      Targets::of_labels(std::move(all_labels), 2, settings.name).wanted(settings.targets, settings.name),
      Normalization(settings), settings.name);
}

}  // namespace

std::unique_ptr<Dataset> make_toy_train(const DatasetSettings& settings, Generator& generator) {
  return points(settings, generator, kTrainPoints, kTrainLabels);
}

std::unique_ptr<Dataset> make_toy_test(const DatasetSettings& settings, Generator& generator) {
  return points(settings, generator, kTestPoints, kTestLabels);
}

void skip_toy_train(const DatasetSettings& settings, Generator& generator) { make_toy_train(settings, generator); }

std::unique_ptr<Dataset> make_toy16(const DatasetSettings& settings, Generator& generator) {
  std::vector<float> x(32);
  generator.normal(x);
  std::vector<int64_t> labels;
  for (size_t row = 0; row < 16; ++row) labels.push_back(x[2 * row] > 0 ? 1 : 0);
  return std::make_unique<FloatDataset>(
      std::move(x), Shape{2},
      Targets::of_labels(std::move(labels), 2, settings.name).wanted(settings.targets, settings.name),
      Normalization(settings), settings.name);
}

}  // namespace lockstep

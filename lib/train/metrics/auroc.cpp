// Area under the ROC curve as the rank statistic of Mann and Whitney: the share of (positive, negative) pairs in which
// the positive scores higher, ties counting one half. Counted in integers over the scores of all ranks, so it is exact.
// It is no average over ranks: a rank may hold one class only, or nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "core/error.h"
#include "train/metrics/builders.h"

namespace lockstep {
namespace {

// Of one class against the rest.
struct Scores {
  std::vector<double> positive, negative;
  void clear() { positive.clear(), negative.clear(); }
};

// The number of positives, then their scores, then those of the negatives.
std::vector<double> pack(const Scores& scores) {
  std::vector<double> words{static_cast<double>(scores.positive.size())};
  words.insert(words.end(), scores.positive.begin(), scores.positive.end());
  words.insert(words.end(), scores.negative.begin(), scores.negative.end());
  return words;
}

void unpack(std::span<const std::byte> bytes, Scores& all) {
  std::vector<double> words(bytes.size() / sizeof(double));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(double));
  const auto first_negative = words.begin() + 1 + static_cast<std::ptrdiff_t>(words.front());
  all.positive.insert(all.positive.end(), words.begin() + 1, first_negative);
  all.negative.insert(all.negative.end(), first_negative, words.end());
}

// NaN where a class is missing or a score is NaN. Sorts the negatives.
double area(Scores& scores) {
  const auto nan = [](double x) { return std::isnan(x); };
  auto& [positive, negative] = scores;
  if (positive.empty() || negative.empty() || std::ranges::any_of(positive, nan) || std::ranges::any_of(negative, nan))
    return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(negative);
  uint64_t halves = 0;  // two for a pair in order, one for a tie
  for (const double score : positive) {
    const auto equal = std::ranges::equal_range(negative, score);
    halves += 2 * static_cast<uint64_t>(equal.begin() - negative.begin()) + equal.size();
  }
  return static_cast<double>(halves) /
         (2 * static_cast<double>(positive.size()) * static_cast<double>(negative.size()));
}

class Auroc final : public Metric {
 public:
  explicit Auroc(const MetricContext& context)
      : outputs_(context.outputs), labels_(context.targets == TargetKind::labels) {
    if (labels_ && outputs_ < 2)
      throw_error("eval.metrics: auroc needs 2 outputs of the model or more for class targets, found {}", outputs_);
    const bool binary = labels_ && outputs_ == 2;
    scores_.resize(static_cast<size_t>(binary ? 1 : outputs_));
    areas_.resize(scores_.size());
    reset();
  }
  void reset() override {
    for (Scores& scores : scores_) scores.clear();
    std::ranges::fill(areas_, std::numeric_limits<double>::quiet_NaN());
  }
  void accumulate(const TensorView& output, const TensorView& target) override {
    const int64_t rows = output.desc.shape[0];
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = output.f32() + row * outputs_;
      if (labels_) {
        add_classes(x, target.i64()[row]);
      } else {
        add_outputs(x, target.f32() + row * outputs_);
      }
    }
  }
  // The scores of one class after another meet on all ranks; the ranks take turns in counting them.
  void reduce(Communicator& communicator) override {
    for (size_t c = 0; c < scores_.size(); ++c) {
      const std::vector<double> mine = pack(scores_[c]);
      const auto theirs = communicator.all_gather(std::as_bytes(std::span(mine)));
      scores_[c].clear();
      areas_[c] = 0;
      if (c % static_cast<size_t>(communicator.size()) != static_cast<size_t>(communicator.rank())) continue;
      for (const auto& bytes : theirs) unpack(bytes, scores_[c]);
      areas_[c] = area(scores_[c]);
    }
    communicator.all_reduce(areas_, ReduceOp::sum);
  }
  std::vector<MetricValue> values() const override {
    double sum = 0, defined = 0;
    for (const double value : areas_) {
      if (!std::isnan(value)) sum += value, ++defined;
    }
    const double mean = defined > 0 ? sum / defined : std::numeric_limits<double>::quiet_NaN();
    std::vector<MetricValue> values{{.name = "auroc", .numbers = {mean}}};
    if (areas_.size() > 1)
      values.push_back({.name = "auroc_per_class", .form = MetricValue::Form::list, .numbers = areas_});
    return values;
  }

 private:
  void add(size_t c, double score, bool positive) {
    (positive ? scores_[c].positive : scores_[c].negative).push_back(score);
  }
  // The score of a class is the logarithm of its softmax probability, which ranks as the probability does but never
  // saturates; of two classes it is enough to look at the second one's lead.
  void add_classes(const float* x, int64_t label) {
    if (outputs_ == 2) return add(0, static_cast<double>(x[1]) - static_cast<double>(x[0]), label == 1);
    const double largest = *std::max_element(x, x + outputs_);
    double sum = 0;
    for (int64_t c = 0; c < outputs_; ++c) sum += std::exp(x[c] - largest);
    const double log_sum = std::log(sum);
    for (int64_t c = 0; c < outputs_; ++c) add(static_cast<size_t>(c), x[c] - largest - log_sum, label == c);
  }
  // Every output is a yes or no of its own.
  void add_outputs(const float* x, const float* target) {
    for (int64_t c = 0; c < outputs_; ++c) {
      if (target[c] != 0 && target[c] != 1) throw_error("auroc: expected targets 0 or 1, found {}", target[c]);
      add(static_cast<size_t>(c), x[c], target[c] == 1);
    }
  }

  int64_t outputs_;
  bool labels_;
  std::vector<Scores> scores_;  // by class, or the one that two classes need
  std::vector<double> areas_;
};

}  // namespace

std::unique_ptr<Metric> make_auroc(const MetricContext& context) { return std::make_unique<Auroc>(context); }

}  // namespace lockstep

// Accuracy and its wider form: the share of samples whose class is among the k highest scores, by count.
#include <array>
#include <limits>

#include "backend/metrics_ops.h"
#include "core/error.h"
#include "train/metrics/builders.h"

namespace lockstep {
namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN(); }

class Accuracy final : public Metric {
 public:
  void reset() override { counts_ = {}; }
  void accumulate(const TensorView& output, const TensorView& target) override {
    counts_[0] += static_cast<double>(count_correct(output, target));
    counts_[1] += static_cast<double>(target.numel());
  }
  void reduce(Communicator& communicator) override { communicator.all_reduce(counts_, ReduceOp::sum); }
  std::vector<MetricValue> values() const override {
    return {{.name = "accuracy", .numbers = {share(counts_[0], counts_[1])}},
            {.name = "correct", .numbers = {counts_[0]}, .counts = true}};
  }

 private:
  std::array<double, 2> counts_{};  // correct, all
};

// Of equal scores the one of the lower class comes first, so that top_1 would be the accuracy.
class TopK final : public Metric {
 public:
  TopK(int64_t k, const MetricContext& context) : k_(k), classes_(context.outputs), name_(fmt::format("top_{}", k)) {
    if (classes_ < k)
      throw_error("eval.metrics: {} needs {} outputs of the model or more, found {}", name_, k, classes_);
  }
  void reset() override { counts_ = {}; }
  void accumulate(const TensorView& output, const TensorView& target) override {
    for (int64_t row = 0; row < target.numel(); ++row) {
      if (among_first(output.f32() + row * classes_, target.i64()[row])) ++counts_[0];
    }
    counts_[1] += static_cast<double>(target.numel());
  }
  void reduce(Communicator& communicator) override { communicator.all_reduce(counts_, ReduceOp::sum); }
  std::vector<MetricValue> values() const override {
    return {{.name = name_, .numbers = {share(counts_[0], counts_[1])}}};
  }

 private:
  bool among_first(const float* scores, int64_t label) const {
    if (predicted_class(scores, classes_) < 0) return false;
    int64_t before = 0;
    for (int64_t c = 0; c < classes_; ++c)
      before += scores[c] > scores[label] || (scores[c] == scores[label] && c < label) ? 1 : 0;
    return before < k_;
  }

  int64_t k_, classes_;
  std::string name_;
  std::array<double, 2> counts_{};  // among the first k, all
};

}  // namespace

int64_t predicted_class(const float* scores, int64_t classes) {
  int64_t best = 0;
  bool nan = false;
  for (int64_t c = 0; c < classes; ++c) {
    if (scores[c] > scores[best]) best = c;
    nan = nan || scores[c] != scores[c];
  }
  return nan ? -1 : best;
}

std::unique_ptr<Metric> make_accuracy(const MetricContext&) { return std::make_unique<Accuracy>(); }
std::unique_ptr<Metric> make_top_3(const MetricContext& context) { return std::make_unique<TopK>(3, context); }
std::unique_ptr<Metric> make_top_5(const MetricContext& context) { return std::make_unique<TopK>(5, context); }
std::unique_ptr<Metric> make_top_10(const MetricContext& context) { return std::make_unique<TopK>(10, context); }

}  // namespace lockstep

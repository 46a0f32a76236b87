// Precision, recall and F1 per class, macro and weighted, and the confusion matrix: all from additive counts.
// Where a class has nothing to divide by, its value is 0. The macro average is over the classes that occur among the
// targets or the predictions, the weighted one weighs each class with its targets (both as scikit-learn does).
#include <limits>

#include "core/error.h"
#include "train/metrics/builders.h"

namespace lockstep {
namespace {

struct ClassCounts {
  double hits, targets, predictions;
};

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
double precision(const ClassCounts& c) { return ratio(c.hits, c.predictions); }
double recall(const ClassCounts& c) { return ratio(c.hits, c.targets); }
double f1(const ClassCounts& c) { return ratio(2 * c.hits, c.targets + c.predictions); }

class PerClass final : public Metric {
 public:
  using Formula = double (*)(const ClassCounts&);
  PerClass(std::string name, Formula formula, const MetricContext& context)
      : name_(std::move(name)), formula_(formula), classes_(context.outputs) {
    reset();
  }
  void reset() override { counts_.assign(static_cast<size_t>(3 * classes_), 0); }
  void accumulate(const TensorView& output, const TensorView& target) override {
    for (int64_t row = 0; row < target.numel(); ++row) {
      const int64_t label = target.i64()[row];
      const int64_t predicted = predicted_class(output.f32() + row * classes_, classes_);
      ++counts_[static_cast<size_t>(3 * label + 1)];
      if (predicted >= 0) ++counts_[static_cast<size_t>(3 * predicted + 2)];
      if (predicted == label) ++counts_[static_cast<size_t>(3 * label)];
    }
  }
  void reduce(Communicator& communicator) override { communicator.all_reduce(counts_, ReduceOp::sum); }
  std::vector<MetricValue> values() const override {
    std::vector<double> each;
    double sum = 0, weighted = 0, classes = 0, targets = 0;
    for (size_t c = 0; c < counts_.size(); c += 3) {
      const ClassCounts counts{counts_[c], counts_[c + 1], counts_[c + 2]};
      each.push_back(formula_(counts));
      if (counts.targets + counts.predictions == 0) continue;
      ++classes;
      sum += each.back();
      targets += counts.targets;
      weighted += counts.targets * each.back();
    }
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    return {{.name = name_, .numbers = {classes > 0 ? sum / classes : nothing}},
            {.name = name_ + "_weighted", .numbers = {targets > 0 ? weighted / targets : nothing}},
            {.name = name_ + "_per_class", .form = MetricValue::Form::list, .numbers = std::move(each)}};
  }

 private:
  std::string name_;
  Formula formula_;
  int64_t classes_;
  std::vector<double> counts_;  // per class: hits, targets, predictions
};

class Confusion final : public Metric {
 public:
  explicit Confusion(const MetricContext& context) : classes_(context.outputs) {
    constexpr int64_t kMost = 2048;
    if (classes_ > kMost)
      throw_error("eval.metrics: confusion is a table of {0} x {0} numbers here; {1} outputs are the limit", classes_,
                  kMost);
    reset();
  }
  void reset() override { counts_.assign(static_cast<size_t>(classes_ * classes_), 0); }
  void accumulate(const TensorView& output, const TensorView& target) override {
    for (int64_t row = 0; row < target.numel(); ++row) {
      const int64_t predicted = predicted_class(output.f32() + row * classes_, classes_);
      if (predicted >= 0) ++counts_[static_cast<size_t>(target.i64()[row] * classes_ + predicted)];
    }
  }
  void reduce(Communicator& communicator) override { communicator.all_reduce(counts_, ReduceOp::sum); }
  std::vector<MetricValue> values() const override {
    return {{.name = "confusion",
             .form = MetricValue::Form::table,
             .numbers = counts_,
             .columns = classes_,
             .counts = true}};
  }

 private:
  int64_t classes_;
  std::vector<double> counts_;  // [target, prediction]
};

}  // namespace

std::unique_ptr<Metric> make_precision(const MetricContext& context) {
  return std::make_unique<PerClass>("precision", precision, context);
}
std::unique_ptr<Metric> make_recall(const MetricContext& context) {
  return std::make_unique<PerClass>("recall", recall, context);
}
std::unique_ptr<Metric> make_f1(const MetricContext& context) { return std::make_unique<PerClass>("f1", f1, context); }
std::unique_ptr<Metric> make_confusion(const MetricContext& context) { return std::make_unique<Confusion>(context); }

}  // namespace lockstep

// Errors of real values: mean squared, mean absolute, and the coefficient of determination. Sums are exact, so nothing
// cancels and nothing depends on the split.
#include <cmath>
#include <limits>

#include "train/metrics/builders.h"
#include "train/metrics/exact_sum.h"

namespace lockstep {
namespace {

double squared(double error) { return error * error; }
double absolute(double error) { return std::abs(error); }

// Over all numbers of all samples.
class MeanError final : public Metric {
 public:
  using Formula = double (*)(double error);
  MeanError(std::string name, Formula formula) : name_(std::move(name)), formula_(formula) {}
  void reset() override { sum_ = {}, count_ = 0; }
  void accumulate(const TensorView& output, const TensorView& target) override {
    for (int64_t i = 0; i < target.numel(); ++i)
      sum_.add(formula_(static_cast<double>(output.f32()[i]) - static_cast<double>(target.f32()[i])));
    count_ += static_cast<double>(target.numel());
  }
  void reduce(Communicator& communicator) override {
    lockstep::reduce({&sum_, 1}, communicator);
    communicator.all_reduce({&count_, 1}, ReduceOp::sum);
  }
  std::vector<MetricValue> values() const override {
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    return {{.name = name_, .numbers = {count_ > 0 ? sum_.value() / count_ : nothing}}};
  }

 private:
  std::string name_;
  Formula formula_;
  ExactSum sum_;
  double count_ = 0;
};

// 1 - (sum of squared errors) / (sum of squared deviations of the targets from their mean), per output, then the mean
// over the outputs. The deviations need a second look at the targets, once the mean over all ranks is known.
class R2 final : public Metric {
 public:
  explicit R2(const MetricContext& context) : outputs_(static_cast<size_t>(context.outputs)) { reset(); }
  void reset() override {
    targets_.clear();
    errors_.assign(outputs_, {});
    deviations_.assign(outputs_, {});
    rows_ = 0;
  }
  void accumulate(const TensorView& output, const TensorView& target) override {
    for (size_t i = 0; i < static_cast<size_t>(target.numel()); ++i)
      errors_[i % outputs_].add(squared(static_cast<double>(output.f32()[i]) - static_cast<double>(target.f32()[i])));
    targets_.insert(targets_.end(), target.f32(), target.f32() + target.numel());
    rows_ += static_cast<double>(target.numel()) / static_cast<double>(outputs_);
  }
  void reduce(Communicator& communicator) override {
    communicator.all_reduce({&rows_, 1}, ReduceOp::sum);
    lockstep::reduce(errors_, communicator);
    std::vector<ExactSum> sums(outputs_);
    for (size_t i = 0; i < targets_.size(); ++i) sums[i % outputs_].add(targets_[i]);
    lockstep::reduce(sums, communicator);
    std::vector<double> means;
    for (const ExactSum& sum : sums) means.push_back(sum.value() / rows_);
    for (size_t i = 0; i < targets_.size(); ++i)
      deviations_[i % outputs_].add(squared(targets_[i] - means[i % outputs_]));
    lockstep::reduce(deviations_, communicator);
    targets_.clear();
  }
  std::vector<MetricValue> values() const override {
    double sum = 0;
    for (size_t c = 0; c < outputs_; ++c) sum += of_output(errors_[c].value(), deviations_[c].value());
    return {{.name = "r2", .numbers = {sum / static_cast<double>(outputs_)}}};
  }

 private:
  // Targets that are all equal have no deviation to explain: 1 where they were met exactly, else 0. Fewer than two
  // samples have no value.
  double of_output(double errors, double deviations) const {
    if (rows_ < 2) return std::numeric_limits<double>::quiet_NaN();
    if (deviations == 0) return errors == 0 ? 1 : 0;
    return 1 - errors / deviations;
  }

  size_t outputs_;
  std::vector<float> targets_;                 // of this rank, until reduce()
  std::vector<ExactSum> errors_, deviations_;  // by output
  double rows_ = 0;
};

}  // namespace

std::unique_ptr<Metric> make_mse(const MetricContext&) { return std::make_unique<MeanError>("mse", squared); }
std::unique_ptr<Metric> make_mae(const MetricContext&) { return std::make_unique<MeanError>("mae", absolute); }
std::unique_ptr<Metric> make_r2(const MetricContext& context) { return std::make_unique<R2>(context); }

}  // namespace lockstep

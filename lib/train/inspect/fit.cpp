#include "train/inspect/fit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "train/batch_norm_plan.h"
#include "train/config_batch.h"
#include "train/inspect/memory_table.h"
#include "train/translate.h"

namespace lockstep {
namespace {

// What the batch per rank may be, ascending: 1, 2, ... most, or the divisors of a rank's share of the global batch.
class Candidates {
 public:
  Candidates(const Config& config, int64_t most, int64_t world_size) : count_(most) {
    if (!config.train.global_batch_size) return;
    const int64_t replicas = config.train.virtual_ranks.value_or(world_size);
    const int64_t share = *config.train.global_batch_size / replicas;
    if (share * replicas != *config.train.global_batch_size)
      throw_error("train.global_batch_size {} cannot be dealt to {} ranks", *config.train.global_batch_size, replicas);
    for (int64_t batch = 1; batch <= std::min(share, most); ++batch) {
      if (share % batch == 0) divisors_.push_back(batch);
    }
    count_ = std::ssize(divisors_);
  }
  int64_t count() const { return count_; }
  int64_t operator[](int64_t index) const {
    return divisors_.empty() ? index + 1 : divisors_[static_cast<size_t>(index)];
  }

 private:
  int64_t count_;
  std::vector<int64_t> divisors_;
};

// The last of 0 ... count - 1 that fits, given that `first` does and that none does beyond one that doesn't: doubling,
// then halving, so that no batch far too large is planned.
int64_t last_that_fits(int64_t first, int64_t count, const std::function<bool(int64_t)>& fits) {
  int64_t good = first, step = 1;
  while (good + step < count && fits(good + step)) good += step, step *= 2;
  for (step = std::min(step, count - good); step > 0; step /= 2) {
    while (good + step < count && fits(good + step)) good += step;
  }
  return good;
}

// What trains with the batch sizes of a config, and which of them a batch norm refuses: some micro-batch would be one
// value per channel.
class Trial {
 public:
  Trial(const Config& start, const DataFacts& data, int64_t world_size, Backend& backend)
      : config(start),
        data_(data),
        world_size_(world_size),
        backend_(backend),
        norms_(batch_norm_sites(model_spec(start), data.train.sample_shape)),
        across_ranks_(start.distributed.batch_norm == "sync" && world_size > 1) {}

  bool refused(int64_t batch) const {
    const DataPlan plan = data_plan(of_batch_size(config, batch), data_, world_size_);
    return !one_value_text(plan, norms_, across_ranks_).empty();
  }
  MemoryEstimate needs(int64_t batch) const {
    return estimate_memory(of_batch_size(config, batch), data_, world_size_, backend_);
  }

  Config config;

 private:
  const DataFacts& data_;
  int64_t world_size_;
  Backend& backend_;
  std::vector<BatchNormSite> norms_;
  bool across_ranks_;
};

Config applied(const Config& config, int64_t batch_size, int64_t world_size) {
  if (!config.train.global_batch_size) return of_batch_size(config, batch_size);
  Config accumulated = config;
  accumulated.train.accumulate =
      *config.train.global_batch_size / (batch_size * config.train.virtual_ranks.value_or(world_size));
  return accumulated;
}

}  // namespace

Fit largest_batch(const Config& config, const DataFacts& data, int64_t world_size, uint64_t bytes, Backend& backend) {
  const int64_t replicas = resolve_batch(of_batch_size(config, 1).train, world_size).replicas;
  const int64_t samples = data.train.per_rank ? data.train.size : (data.train.size + replicas - 1) / replicas;
  const Candidates candidates(config, samples, world_size);
  Trial trial(config, data, world_size, backend);
  int64_t first = 0;
  while (first + 1 < candidates.count() && trial.refused(candidates[first])) ++first;
  const auto usable = [&](int64_t index) {
    while (index > first && trial.refused(candidates[index])) --index;
    return candidates[index];
  };
  for (MemoryEstimate least = trial.needs(candidates[first]); least.total() > bytes;
       least = trial.needs(candidates[first])) {
    if (!least.evaluation_decides || trial.config.eval.batch_size == 1)
      throw_error(
          "{}: a batch of {} needs {} a rank, {} are given; largest parts: parameters {}, optimizer state {}, "
          "activations {}, data sets {}",
          config.path, candidates[first], bytes_text(least.total()), bytes_text(bytes), bytes_text(least.parameters),
          bytes_text(least.optimizer), bytes_text(least.activations), bytes_text(least.data));
    trial.config.eval.batch_size /= 2;
  }
  const int64_t batch_size = usable(last_that_fits(
      first, candidates.count(), [&](int64_t index) { return trial.needs(usable(index)).total() <= bytes; }));
  return {.config = applied(trial.config, batch_size, world_size),
          .batch_size = batch_size,
          .estimate = trial.needs(batch_size)};
}

uint64_t parse_bytes(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, int>, 8> kUnits{
      {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"M", 20}, {"G", 30}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, text.data() + text.size());
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, int>::first);
  if (error != std::errc() || found == kUnits.end() || !(value > 0) || value * std::exp2(found->second) > 0x1p60)
    throw_error("expected a number of bytes such as 4GiB, 512MiB or 2000000000, found '{}'", text);
  return static_cast<uint64_t>(value * std::exp2(found->second));
}

}  // namespace lockstep

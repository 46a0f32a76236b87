// Metrics over a whole data set, every sample counted once: (virtual) rank r takes rows r, r + W, ... without padding,
// sums and counts are reduced in double. Which metrics there are is train/metrics/table.h's matter.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "dist/virtual_ranks.h"
#include "nn/network.h"
#include "train/metrics/exact_sum.h"
#include "train/metrics/metric.h"

namespace lockstep {

struct Metrics {
  double loss = 0;                   // mean per unit of weight (per sample for plain cross-entropy)
  int64_t count = 0;                 // samples, over all ranks
  std::vector<int64_t> shard_sizes;  // samples per (virtual) rank
  std::vector<MetricValue> values;   // of eval.metrics, in their order, without the loss

  // A single number: "accuracy", "f1_weighted", "loss"; empty where it isn't among them.
  std::optional<double> number(std::string_view name) const;
};

class Evaluator {
 public:
  // ranks: whose rows this rank takes. batch: samples per forward pass. metrics: as eval.metrics, empty for the
  // default. The data set must not be empty. Throws Error for a metric that doesn't suit the targets, the loss or the
  // network's output.
  Evaluator(const Dataset& dataset, Network& network, Backend& backend, Communicator& communicator,
            const VirtualRanks& ranks, const LossSpec& loss, int64_t batch,
            const std::vector<std::string>& metrics = {});
  // The same numbers on every rank, for any number of ranks: add_shard for each shard of this rank, then reduce.
  // Collective. asked_to_end: called before every batch, equally often on all ranks; where it says yes, on all ranks
  // alike, there are no metrics.
  std::optional<Metrics> run(const std::function<bool()>& asked_to_end = [] { return false; });
  const std::vector<std::unique_ptr<Metric>>& metrics() const { return metrics_; }

 private:
  // Counts these rows of the data set in; nothing of other ranks. Any number of shards, in any order, one after
  // another: the sums are exact.
  bool add_shard(std::span<const int64_t> rows, const std::function<bool()>& asked_to_end);
  void add_batch(std::span<const int64_t> rows);
  // Over all ranks, of what was added since.
  Metrics reduce();
  int64_t dealt_to(int64_t rank, int64_t stride) const;
  int64_t most_batches();  // of any rank

  const Dataset& dataset_;
  Network& network_;
  Backend& backend_;
  Communicator& communicator_;
  std::unique_ptr<LossPlan> loss_;  // of one sample: sums of several would depend on which came together
  std::unique_ptr<Feed> feed_;
  std::vector<std::vector<int64_t>> shards_;  // of this rank
  int64_t batch_;
  Buffer x_;
  std::vector<float> targets_, output_;  // output_: a copy on the host, where losses and metrics are computed
  std::vector<int64_t> labels_;
  std::vector<int64_t> shard_sizes_;
  int64_t batches_ = -1;  // of the rank with most of them; -1: not known yet
  std::vector<std::unique_ptr<Metric>> metrics_;
  struct {
    ExactSum loss, weight;
    double count = 0;
  } sums_;  // of this rank, until reduce()
};

}  // namespace lockstep

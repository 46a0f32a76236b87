// Metrics over a whole data set, every sample counted once: rank r takes rows r, r + W, ... without padding, sums and
// counts are reduced in double.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "nn/network.h"

namespace lockstep {

struct Metrics {
  double loss = 0;                   // mean per unit of weight (per sample for plain cross-entropy)
  int64_t correct = -1;              // -1: the targets are not classes
  int64_t count = 0;                 // samples, over all ranks
  std::vector<int64_t> shard_sizes;  // samples per rank
  double accuracy() const { return correct < 0 ? -1 : static_cast<double>(correct) / static_cast<double>(count); }
};

class Evaluator {
 public:
  // batch: samples per forward pass and rank. The data set must not be empty.
  Evaluator(const Dataset& dataset, Network& network, Backend& backend, Communicator& communicator,
            const LossSpec& loss, int64_t batch);
  // The same numbers on every rank, for any number of ranks.
  Metrics run();

 private:
  int64_t dealt_to(int64_t rank, int64_t stride) const;

  const Dataset& dataset_;
  Network& network_;
  Backend& backend_;
  Communicator& communicator_;
  LossSpec loss_;
  std::map<int64_t, std::unique_ptr<LossPlan>> loss_plan_;  // by batch size: the last batch may be short
  std::vector<int64_t> rows_;                               // this rank's shard
  int64_t batch_;
  std::vector<float> x_, targets_;
  std::vector<int64_t> labels_;
  std::vector<int64_t> shard_sizes_;
};

}  // namespace lockstep

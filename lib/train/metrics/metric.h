// One validation metric: sees every sample once, adds up counts and sums, and after reduce() gives the same values on
// every rank, with the same bits for any number of ranks and any batch size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/loss_ops.h"
#include "comm/communicator.h"
#include "core/tensor.h"
#include "data/dataset.h"

namespace lockstep {

// A field of the eval event: a number, a list of numbers or a table.
struct MetricValue {
  enum class Form { number, list, table };
  std::string name;
  Form form = Form::number;
  std::vector<double> numbers;  // one; or all of them, a table row by row
  int64_t columns = 0;          // of a table
  bool counts = false;          // whole numbers below 2^53
};

// What a metric must know before it sees data.
struct MetricContext {
  int64_t outputs = 0;  // numbers per sample that the network gives
  TargetKind targets = TargetKind::labels;
  LossSpec::Kind loss = LossSpec::Kind::cross_entropy;
};

class Metric {
 public:
  virtual ~Metric() = default;
  // Forgets all samples.
  virtual void reset() = 0;
  // output: f32 [n, outputs], canonical; target: i64 [n] class indices in [0, outputs), or f32 [n, outputs].
  virtual void accumulate(const TensorView& output, const TensorView& target) = 0;
  // Collective, also for ranks that saw no sample; after it the object stands for all ranks' samples.
  virtual void reduce(Communicator& communicator) = 0;
  // After reduce(). A value that is not defined (see docs/metrics.md) is NaN.
  virtual std::vector<MetricValue> values() const = 0;
};

}  // namespace lockstep

#include "train/evaluator.h"

#include <algorithm>

#include "backend/metrics_ops.h"
#include "core/error.h"
#include "train/own_data.h"

namespace lockstep {

Evaluator::Evaluator(const Dataset& dataset, Network& network, Backend& backend, Communicator& communicator,
                     const LossSpec& loss, int64_t batch)
    : dataset_(dataset), network_(network), backend_(backend), communicator_(communicator), loss_(loss) {
  if (dataset.size() == 0) throw_error("the validation set is empty");
  const int64_t rank = dataset.per_rank() ? 0 : communicator.rank();
  const int64_t stride = dataset.per_rank() ? 1 : communicator.size();
  for (int64_t row = rank; row < dataset.size(); row += stride) rows_.push_back(row);
  for (int64_t r = 0; r < communicator.size() && !dataset.per_rank(); ++r) shard_sizes_.push_back(dealt_to(r, stride));
  batch_ = std::clamp<int64_t>(static_cast<int64_t>(rows_.size()), 1, batch);
  x_.resize(static_cast<size_t>(batch_ * dataset.sample_shape().numel()));
  if (dataset.target_kind() == TargetKind::labels) {
    labels_.resize(static_cast<size_t>(batch_));
  } else {
    targets_.resize(static_cast<size_t>(batch_ * dataset.target_width()));
  }
}

int64_t Evaluator::dealt_to(int64_t rank, int64_t stride) const {
  return (dataset_.size() - rank + stride - 1) / stride;
}

Metrics Evaluator::run() {
  double sums[4] = {0, 0, 0, 0};  // loss, weight, correct, count
  if (shard_sizes_.empty()) shard_sizes_ = own_sizes("data.val", dataset_, communicator_);
  const bool labels = dataset_.target_kind() == TargetKind::labels;
  for (size_t begin = 0; begin < rows_.size(); begin += static_cast<size_t>(batch_)) {
    const auto rows = std::span(rows_).subspan(begin, std::min(rows_.size() - begin, static_cast<size_t>(batch_)));
    const auto count = static_cast<int64_t>(rows.size());
    dataset_.read(rows, {.x = x_.data(), .labels = labels_.data(), .targets = targets_.data()});
    Graph& graph = network_.graph(Phase::inference, count);
    graph.forward(x_.data(), {});
    const TensorView output = graph.output();
    std::unique_ptr<LossPlan>& plan = loss_plan_[count];
    if (!plan) plan = backend_.plan_loss(loss_, count, output.numel() / count);
    const TensorView target = labels ? TensorView{labels_.data(), {Shape{count}, 1, DType::i64}}
                                     : TensorView{targets_.data(), {Shape{count, dataset_.target_width()}}};
    const LossSums loss = plan->forward(output, target);
    sums[0] += loss.loss;
    sums[1] += loss.weight;
    if (labels) sums[2] += static_cast<double>(count_correct(output, target));
    sums[3] += static_cast<double>(count);
  }
  communicator_.all_reduce(sums, ReduceOp::sum);
  return {.loss = sums[0] / sums[1],
          .correct = labels ? static_cast<int64_t>(sums[2]) : -1,
          .count = static_cast<int64_t>(sums[3]),
          .shard_sizes = shard_sizes_};
}

}  // namespace lockstep

#include "train/evaluator.h"

#include <algorithm>
#include <cmath>

#include "backend/factory.h"
#include "core/error.h"
#include "train/metrics/table.h"
#include "train/own_data.h"

namespace lockstep {

Evaluator::Evaluator(const Dataset& dataset, Network& network, Backend& backend, Communicator& communicator,
                     const VirtualRanks& ranks, const LossSpec& loss, int64_t batch,
                     const std::vector<std::string>& metrics)
    : dataset_(dataset), network_(network), backend_(backend), communicator_(communicator) {
  if (dataset.size() == 0) throw_error("the validation set is empty");
  const bool own = dataset.per_rank();
  const int64_t stride = own ? 1 : ranks.count;
  for (int64_t rank = ranks.first; rank < ranks.first + ranks.held; ++rank) {
    std::vector<int64_t>& rows = shards_.emplace_back();
    for (int64_t row = own ? 0 : rank; row < dataset.size(); row += stride) rows.push_back(row);
  }
  for (int64_t rank = 0; rank < ranks.count && !own; ++rank) shard_sizes_.push_back(dealt_to(rank, stride));
  const int64_t largest_shard = own ? dataset.size() : shard_sizes_[0];
  batch_ = std::clamp<int64_t>(largest_shard, 1, batch);
  const size_t x_bytes = static_cast<size_t>(batch_ * dataset.sample_shape().numel()) * sizeof(float);
  feed_ = backend.make_feed(x_bytes, 0);
  x_ = feed_->allocate(x_bytes);
  if (dataset.target_kind() == TargetKind::labels) {
    labels_.resize(static_cast<size_t>(batch_));
  } else {
    targets_.resize(static_cast<size_t>(batch_ * dataset.target_width()));
  }
  loss_ = make_host_loss(loss, 1, network.output_shape().numel());
  metrics_ = make_metrics(
      metrics, {.outputs = network.output_shape().numel(), .targets = dataset.target_kind(), .loss = loss.kind});
}

int64_t Evaluator::dealt_to(int64_t rank, int64_t stride) const {
  return (dataset_.size() - rank + stride - 1) / stride;
}

std::optional<Metrics> Evaluator::run(const std::function<bool()>& asked_to_end) {
  if (shard_sizes_.empty()) shard_sizes_ = own_sizes("data.val", dataset_, communicator_);
  sums_ = {};
  for (const auto& metric : metrics_) metric->reset();
  const int64_t most = most_batches();
  int64_t asked = 0;
  const auto end = [&] { return ++asked, asked_to_end(); };
  for (const std::vector<int64_t>& rows : shards_) {
    if (!add_shard(rows, end)) return std::nullopt;
  }
  while (asked < most) {
    if (end()) return std::nullopt;
  }
  return reduce();
}

bool Evaluator::add_shard(std::span<const int64_t> rows, const std::function<bool()>& asked_to_end) {
  for (; !rows.empty(); rows = rows.subspan(std::min(rows.size(), static_cast<size_t>(batch_)))) {
    if (asked_to_end()) return false;
    add_batch(rows.first(std::min(rows.size(), static_cast<size_t>(batch_))));
  }
  return true;
}

int64_t Evaluator::most_batches() {
  if (batches_ >= 0) return batches_;
  double most = 0;
  for (const auto& rows : shards_) most += std::ceil(static_cast<double>(rows.size()) / static_cast<double>(batch_));
  communicator_.all_reduce({&most, 1}, ReduceOp::max);
  return batches_ = static_cast<int64_t>(most);
}

void Evaluator::add_batch(std::span<const int64_t> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  feed_->release();
  dataset_.read(rows, {.x = x_.as<float>().data(), .labels = labels_.data(), .targets = targets_.data()});
  Graph& graph = network_.graph(Phase::inference, count);
  const size_t x_bytes = static_cast<size_t>(count * dataset_.sample_shape().numel()) * sizeof(float);
  graph.forward(static_cast<const float*>(feed_->upload(x_.data(), x_bytes, nullptr, 0).x), {});
  TensorView output = graph.output();
  if (!backend_.memory().host()) {
    output_.resize(output.span().size());
    backend_.memory().download(output_, output.span());
    output.data = output_.data();
  }
  const bool labels = dataset_.target_kind() == TargetKind::labels;
  const int64_t outputs = output.numel() / count, width = dataset_.target_width();
  for (int64_t row = 0; row < count; ++row) {
    const TensorView target = labels ? TensorView{labels_.data() + row, {Shape{1}, 1, DType::i64}}
                                     : TensorView{targets_.data() + row * width, {Shape{1, width}}};
    const LossSums loss = loss_->forward({output.f32() + row * outputs, {Shape{1, outputs}}}, target);
    sums_.loss.add(loss.loss);
    sums_.weight.add(loss.weight);
  }
  sums_.count += static_cast<double>(count);
  const TensorView target = labels ? TensorView{labels_.data(), {Shape{count}, 1, DType::i64}}
                                   : TensorView{targets_.data(), {Shape{count, width}}};
  for (const auto& metric : metrics_) metric->accumulate(output, target);
}

Metrics Evaluator::reduce() {
  ExactSum sums[] = {sums_.loss, sums_.weight};
  lockstep::reduce(sums, communicator_);
  communicator_.all_reduce({&sums_.count, 1}, ReduceOp::sum);
  Metrics result{.loss = sums[0].value() / sums[1].value(),
                 .count = static_cast<int64_t>(sums_.count),
                 .shard_sizes = shard_sizes_,
                 .values = {}};
  for (const auto& metric : metrics_) {
    metric->reduce(communicator_);
    for (MetricValue& value : metric->values()) result.values.push_back(std::move(value));
  }
  return result;
}

std::optional<double> Metrics::number(std::string_view name) const {
  if (name == "loss") return loss;
  for (const MetricValue& value : values) {
    if (value.name == name && value.form == MetricValue::Form::number) return value.numbers.front();
  }
  return std::nullopt;
}

}  // namespace lockstep

#include "train/nonfinite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/log.h"

namespace lockstep {
namespace {

constexpr size_t rows_told = 64;  // of a rank; more help nobody

NonfinitePolicy::Kind parse(const std::string& name) {
  if (name == "stop") return NonfinitePolicy::Kind::stop;
  if (name == "skip") return NonfinitePolicy::Kind::skip;
  if (name == "ignore") return NonfinitePolicy::Kind::ignore;
  throw_error("train.on_nonfinite: expected stop, skip or ignore, found '{}'", name);
}

}  // namespace

NonfinitePolicy::NonfinitePolicy(const std::string& name, ParameterStore& store, Communicator& communicator,
                                 size_t rows)
    : kind_(parse(name)), store_(store), communicator_(communicator) {
  rows_.reserve(rows);
  bad_rows_.reserve(rows);
  if (kind_ == Kind::skip) statistics_.resize(store.buffer_values().size());
}

void NonfinitePolicy::begin_step() {
  rows_.clear();
  if (kind_ == Kind::skip) std::ranges::copy(store_.buffer_values(), statistics_.begin());
}

void NonfinitePolicy::add_rows(std::span<const int64_t> rows) { rows_.insert(rows_.end(), rows.begin(), rows.end()); }

void NonfinitePolicy::observe(int64_t step, double loss) {
  if (kind_ == Kind::ignore || std::isfinite(loss) || bad_step_ >= 0) return;
  bad_step_ = step;
  bad_rows_ = rows_;
}

void NonfinitePolicy::stop_if_bad(double flags, double loss, int64_t step) {
  if (kind_ != Kind::stop || (flags == 0 && std::isfinite(loss))) return;
  const std::string who = culprits(step);
  throw_error(
      "the loss is not finite at step {}{}: lower optimizer.lr, clip with train.clip_norm, or look at these rows "
      "(train.on_nonfinite: skip goes on without such steps)",
      step, who);
}

bool NonfinitePolicy::skip(int64_t step, const OptimizerOps& ops) {
  if (kind_ != Kind::skip) return false;
  // The reduced gradient is the same on all ranks; a sum of squares in double is finite unless an element is not.
  const std::span<const float> gradients = store_.gradients();
  const bool bad_gradient = !std::isfinite(ops.sum_of_squares(gradients.size(), gradients.data()));
  double flag = bad_gradient || bad_step_ >= 0 ? 1 : 0;
  communicator_.all_reduce({&flag, 1}, ReduceOp::max);
  if (flag == 0) {
    in_a_row_ = 0;
    return false;
  }
  int64_t first = step;
  const std::string who = culprits(first);
  if (communicator_.rank() == 0)
    log::warning("step {} is skipped: {} not finite{}", step, who.empty() ? "the gradient is" : "the loss is", who);
  std::ranges::copy(statistics_, store_.buffer_values().begin());
  bad_step_ = -1;
  ++skipped_;
  if (++in_a_row_ == most_in_a_row)
    throw_error("{} steps in a row were skipped, the last is step {}: nothing is learned any more", in_a_row_, step);
  return true;
}

std::string NonfinitePolicy::culprits(int64_t& step) {
  std::vector<int64_t> mine{bad_step_, static_cast<int64_t>(bad_rows_.size())};
  if (bad_step_ >= 0)
    mine.insert(mine.end(), bad_rows_.begin(),
                bad_rows_.begin() + static_cast<std::ptrdiff_t>(std::min(bad_rows_.size(), rows_told)));
  std::vector<std::vector<int64_t>> ranks;
  for (const auto& bytes : communicator_.all_gather(std::as_bytes(std::span<const int64_t>(mine)))) {
    std::memcpy(ranks.emplace_back(bytes.size() / sizeof(int64_t)).data(), bytes.data(), bytes.size());
    if (ranks.back()[0] >= 0) step = std::min(step, ranks.back()[0]);
  }
  std::string text;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank][0] != step) continue;
    const std::span<const int64_t> rows = std::span(ranks[rank]).subspan(2);
    const bool all = static_cast<int64_t>(rows.size()) == ranks[rank][1];
    text += fmt::format("{} rank {} (rows {}{})", text.empty() ? " on" : ",", rank, fmt::join(rows, ", "),
                        all ? "" : ", ...");
  }
  return text;
}

}  // namespace lockstep

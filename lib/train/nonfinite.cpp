#include "train/nonfinite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/gather.h"
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

NonfinitePolicy::NonfinitePolicy(const std::string& name, ParameterStore& store, std::span<float> statistics,
                                 Communicator& communicator, size_t rows)
    : kind_(parse(name)), store_(store), communicator_(communicator), statistics_(statistics) {
  for (std::vector<int64_t>& of_step : rows_) of_step.reserve(rows);
  bad_rows_.reserve(rows);
  if (kind_ == Kind::skip) kept_statistics_ = store.memory().allocate(statistics.size_bytes());
}

GradientWatch* NonfinitePolicy::watch(const OptimizerOps& ops, WireFormat wire) {
  if (kind_ == Kind::skip || (kind_ == Kind::stop && wire != WireFormat::fp32)) watch_.emplace(store_, ops, wire);
  return watch_ ? &*watch_ : nullptr;
}

void NonfinitePolicy::begin_step(int64_t step) {
  step_ = step;
  rows_of(step).clear();
  if (watch_) watch_->begin_step();
  if (kind_ == Kind::skip) store_.memory().copy(kept_statistics_.as<float>(), statistics_);
}

void NonfinitePolicy::add_rows(std::span<const int64_t> rows) {
  std::vector<int64_t>& of_step = rows_of(step_);
  of_step.insert(of_step.end(), rows.begin(), rows.end());
}

void NonfinitePolicy::observe(int64_t step, double loss) {
  if (kind_ == Kind::ignore || bad_step_ >= 0) return;
  if (std::isfinite(loss) && !(watch_ && watch_->bad_parameter() != nullptr)) return;
  bad_step_ = step;
  bad_rows_ = rows_of(step);
  bad_what_ = std::isfinite(loss) ? watch_->describe() : "the loss is not finite";
}

void NonfinitePolicy::stop_if_bad(double flags, double loss, int64_t step) {
  if (kind_ != Kind::stop || (flags == 0 && std::isfinite(loss))) return;
  const std::string who = culprits(step);
  throw_error(
      "step {}: {}: lower optimizer.lr, clip with train.clip_norm, or look at these rows (train.on_nonfinite: skip "
      "goes "
      "on without such steps)",
      step, who.empty() ? "the sum of the ranks' losses is not finite" : who);
}

bool NonfinitePolicy::skip(int64_t step, const OptimizerOps& ops, bool overflowed) {
  if (kind_ != Kind::skip) return false;
  // The reduced gradient is the same on all ranks; a sum of squares in double is finite unless an element is not.
  const std::span<const float> gradients = store_.gradients();
  const bool bad_gradient = !overflowed && !std::isfinite(ops.sum_of_squares(gradients.size(), gradients.data()));
  if (bad_gradient && watch_ && !watch_->looked()) {  // nothing was sent: these are this rank's own
    watch_->look_at_all();
    observe(step, 0);
  }
  double flag = bad_gradient || bad_step_ >= 0 ? 1 : 0;
  communicator_.all_reduce({&flag, 1}, ReduceOp::max);
  if (flag == 0) {
    in_a_row_ = 0;
    return false;
  }
  int64_t first = step;
  const std::string who = culprits(first);
  if (communicator_.rank() == 0)
    log::warning("step {} is skipped: {}", step,
                 who.empty() ? "the sum of the ranks' gradients is not finite, though each of them is" : who);
  store_.memory().copy(statistics_, kept_statistics_.as<float>());
  bad_step_ = -1;
  ++skipped_;
  if (++in_a_row_ == most_in_a_row)
    throw_error("{} steps in a row were skipped, the last is step {}: nothing is learned any more", in_a_row_, step);
  return true;
}

State NonfinitePolicy::state() const {
  State state;
  state.set("skipped", skipped_);
  state.set("in_a_row", in_a_row_);
  return state;
}

void NonfinitePolicy::restore(const State& state) {
  skipped_ = state.integer("skipped");
  in_a_row_ = state.integer("in_a_row");
}

std::string NonfinitePolicy::culprits(int64_t& step) {
  // Step, number of rows, some of them; then the words.
  std::vector<int64_t> numbers{bad_step_, static_cast<int64_t>(bad_rows_.size())};
  if (bad_step_ >= 0)
    numbers.insert(numbers.end(), bad_rows_.begin(),
                   bad_rows_.begin() + static_cast<std::ptrdiff_t>(std::min(bad_rows_.size(), rows_told)));
  std::vector<std::vector<int64_t>> ranks;
  for (const auto& bytes : communicator_.all_gather(std::as_bytes(std::span<const int64_t>(numbers)))) {
    std::memcpy(ranks.emplace_back(bytes.size() / sizeof(int64_t)).data(), bytes.data(), bytes.size());
    if (ranks.back()[0] >= 0) step = std::min(step, ranks.back()[0]);
  }
  const std::vector<std::string> words = gather_texts(bad_what_, communicator_);
  std::string text, before;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank][0] != step) continue;
    const std::string& what = words[rank];
    const std::span<const int64_t> rows = std::span(ranks[rank]).subspan(2);
    const bool all = static_cast<int64_t>(rows.size()) == ranks[rank][1];
    if (!text.empty()) text += what == before ? "," : "; ";
    if (what != before) text += what + " on";
    text += fmt::format(" rank {} (rows {}{})", rank, fmt::join(rows, ", "), all ? "" : ", ...");
    before = what;
  }
  return text;
}

}  // namespace lockstep

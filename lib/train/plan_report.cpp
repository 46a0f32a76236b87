// Text of data/data_plan.h's numbers; counts nothing itself.
#include "train/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace lockstep {

static constexpr int64_t kEpochsShown = 3, kRanksShown = 8, kRowsShown = 8;

std::string global_batch_line(const DataPlanSpec& spec) {
  return fmt::format("global batch = batch_size {} x world_size {} x accumulate {} = {}", spec.batch_size,
                     spec.world_size, spec.accumulate, EpochPlan(spec).global_batch());
}

std::string empty_loader_text(const DataPlan& plan) {
  const DataPlanSpec& spec = plan.spec();
  const EpochPlan& epoch = plan.epoch();
  if (!epoch.empty_on_some_rank()) return "";
  std::string geometry = fmt::format("{} samples, {} ranks, batch {}", spec.samples, spec.world_size, spec.batch_size);
  if (spec.uneven == Uneven::drop) geometry += ", uneven: drop";
  if (spec.drop_last) geometry += ", drop_last";
  if (epoch.empty_on_every_rank())
    return fmt::format("every loader is empty: {}: nothing to train; lower train.batch_size, start fewer ranks{}",
                       geometry, spec.drop_last ? ", or keep the last batch (sampler.drop_last: false)" : "");
  // Data that is dealt: only with uneven: exact, where the first `samples` ranks have one sample each.
  int64_t idle = spec.own.empty() ? spec.world_size - spec.samples : 0;
  for (size_t rank = 0; rank < spec.own.size(); ++rank)
    idle += epoch.local_count(static_cast<int64_t>(rank), 0) == 0 ? 1 : 0;
  return fmt::format("{} ranks have no samples: {}: they only take part in the reductions", idle, geometry);
}

// "4", or "2-3" where ranks differ.
static std::string range_text(int64_t least, int64_t most) {
  return least == most ? fmt::format("{}", most) : fmt::format("{}-{}", least, most);
}

static std::string samples_text(const DataPlan& plan) {
  const std::vector<int64_t>& own = plan.spec().own;
  if (!own.empty()) return range_text(std::ranges::min(own), std::ranges::max(own));
  return range_text(plan.epoch().rank_samples(plan.spec().world_size - 1), plan.epoch().rank_samples(0));
}

static void append_table(std::string& text, const std::vector<DataPlan>& plans) {
  constexpr auto kRow = "{:>10}  {:>16}  {:>7}  {:>7}  {:>15}  {:>12}  {:>17}  {:>15}\n";
  auto out = std::back_inserter(text);
  fmt::format_to(out, fmt::runtime(kRow), "world_size", "samples per rank", "padding", "dropped", "steps per epoch",
                 "global batch", "last step samples", "optimizer steps");
  for (const DataPlan& plan : plans) {
    const EpochPlan& epoch = plan.epoch();
    const int64_t world_size = plan.spec().world_size;
    fmt::format_to(out, fmt::runtime(kRow), world_size, samples_text(plan), epoch.padding(), epoch.dropped(),
                   epoch.steps(), epoch.global_batch(), epoch.step_samples(epoch.steps() - 1), plan.total_steps());
  }
}

using Lists = std::vector<std::vector<int64_t>>;  // by epoch: its order, without padding

static Lists lists_of(const DataPlanSpec& base, int64_t samples, const SamplerSettings& settings) {
  Lists lists(static_cast<size_t>(std::min(base.epochs, kEpochsShown)));
  for (size_t e = 0; e < lists.size(); ++e) {
    lists[e].resize(static_cast<size_t>(samples));
    epoch_order(settings, static_cast<int64_t>(e), lists[e]);
  }
  return lists;
}

// "    rank 1: 10 8 14 3", cut with "..." after kRowsShown.
static void append_rank_rows(std::string& text, const DataPlan& plan, int64_t rank, const std::vector<int64_t>& list) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "    rank {}:", rank);
  const bool own = !plan.spec().own.empty();
  const int64_t rows = plan.epoch().rank_consumed(rank);
  for (int64_t i = 0; i < std::min(rows, kRowsShown); ++i) {
    const int64_t position = own ? i : rank + i * plan.spec().world_size;
    fmt::format_to(out, " {}", list[static_cast<size_t>(position) % list.size()]);
  }
  text += rows > kRowsShown ? " ...\n" : rows == 0 ? " none\n" : "\n";
}

// lists: one for all ranks, or one of each rank shown that has data of its own.
static void append_world(std::string& text, const DataPlan& plan, std::span<const Lists> lists) {
  auto out = std::back_inserter(text);
  const int64_t world_size = plan.spec().world_size;
  fmt::format_to(out, "\nworld_size {}: {}\n", world_size, global_batch_line(plan.spec()));
  if (const std::string empty = empty_loader_text(plan); !empty.empty()) {
    fmt::format_to(out, "WARNING world_size {}: {}\n", world_size, empty);
  }
  if (plan.epoch().empty_on_every_rank()) return;
  const int64_t ranks = std::min(world_size, kRanksShown);
  for (size_t e = 0; e < lists[0].size(); ++e) {
    fmt::format_to(out, "  epoch {}, first samples\n", e);
    for (int64_t rank = 0; rank < ranks; ++rank)
      append_rank_rows(text, plan, rank, lists[lists.size() == 1 ? 0 : static_cast<size_t>(rank)][e]);
    if (ranks < world_size) fmt::format_to(out, "    and {} ranks more\n", world_size - ranks);
  }
}

std::string plan_report(const DataPlanSpec& base, std::span<const int64_t> world_sizes,
                        const SamplerSettings& settings) {
  std::vector<DataPlan> plans;
  for (const int64_t world_size : world_sizes) {
    DataPlanSpec spec = base;
    spec.world_size = world_size;
    plans.emplace_back(spec);
  }
  std::vector<Lists> lists;
  if (base.own.empty()) lists.push_back(lists_of(base, base.samples, settings));
  for (size_t rank = 0; rank < std::min(base.own.size(), static_cast<size_t>(kRanksShown)); ++rank)
    lists.push_back(lists_of(base, base.own[rank], settings));
  std::string text;
  append_table(text, plans);
  for (const DataPlan& plan : plans) append_world(text, plan, lists);
  return text;
}

}  // namespace lockstep

#include "train/batch_norm_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "nn/builder.h"

namespace lockstep {
namespace {

struct Single {  // a micro-batch of one sample
  int64_t micro_step = 0, rank = 0;
};

// Batches are full until a rank's samples run out, so its only batch of one sample is its last (or, where full ones
// have one sample, its first). All ranks have as many samples as the first one, or as the last one, which has the
// fewest.
std::optional<Single> first_own(const DataPlan& plan) {
  const EpochPlan& epoch = plan.epoch();
  const int64_t batch = plan.spec().batch_size, last = plan.spec().world_size - 1;
  // The first rank of the second kind comes right after those with one sample more.
  const int64_t more = epoch.dealt() % plan.spec().world_size;
  std::optional<Single> found;
  for (const int64_t rank : {int64_t{0}, std::min(more, last)}) {
    const int64_t micro_step = batch == 1 ? 0 : epoch.rank_samples(rank) / batch;
    if (epoch.local_count(rank, micro_step) != 1) continue;
    if (!found || micro_step < found->micro_step) found = {micro_step, rank};
  }
  return found;
}

std::optional<Single> first_common(const DataPlan& plan) {
  const EpochPlan& epoch = plan.epoch();
  const int64_t batch = plan.spec().batch_size * plan.spec().world_size;
  const int64_t micro_step = batch == 1 ? 0 : epoch.dealt() / batch;
  if (epoch.micro_step_samples(micro_step) != 1) return std::nullopt;
  return Single{micro_step, 0};
}

}  // namespace

std::vector<BatchNormSite> batch_norm_sites(const ModelSpec& model, const Shape& sample) {
  std::vector<BatchNormSite> sites;
  for (const BuiltNode& node : build_layers(model, sample)) {
    if (node.layer->kind() != "batch_norm") continue;
    int64_t values = 1;
    for (int axis = 1; axis < node.sample_shape.rank(); ++axis) values *= node.sample_shape[axis];
    sites.push_back({.layer = node.name, .values_per_sample = values});
  }
  return sites;
}

std::string one_value_text(const DataPlan& plan, std::span<const BatchNormSite> sites, bool across_ranks) {
  const auto site = std::ranges::find(sites, 1, &BatchNormSite::values_per_sample);
  if (site == sites.end()) return "";
  const std::optional<Single> single = across_ranks ? first_common(plan) : first_own(plan);
  if (!single) return "";
  const int64_t step = single->micro_step / plan.spec().accumulate;
  if (step >= plan.total_steps()) return "";  // max_steps comes first
  const std::string whose = across_ranks ? fmt::format("all {} ranks together have", plan.spec().world_size)
                                         : fmt::format("rank {} has", single->rank);
  const std::string which =
      plan.spec().accumulate == 1
          ? fmt::format("step {}", step)
          : fmt::format("micro-step {} of step {}", single->micro_step % plan.spec().accumulate, step);
  return fmt::format(
      "Expected more than 1 value per channel when training, but in {} {} one sample for the batch norm '{}': {}",
      which, whose, site->layer,
      plan.spec().batch_size == 1 ? "take a larger train.batch_size"
                                  : "set sampler.drop_last: true, or another train.batch_size");
}

}  // namespace lockstep

// The section schedule, which holds schedules itself (kind sequence).
#include <fmt/format.h>

#include <algorithm>

#include "train/config_keys.h"
#include "train/metrics/table.h"

namespace lockstep {
namespace {

using S = ScheduleConfig;

std::vector<Key> common_keys() {
  std::vector<Key> keys;
  keys.push_back(key("kind", &S::kind,
                     one_of({"none", "step", "multi_step", "exponential", "constant", "linear", "polynomial", "cosine",
                             "one_cycle", "sequence", "plateau"}),
                     "Shape of the learning rate over time.")
                     .also({"type", "name"}));
  keys.push_back(key("per", &S::per, one_of({"step", "epoch"}), "What the schedule counts: optimizer steps or epochs.")
                     .also({"interval", "unit"}));
  keys.push_back(key("warmup", &S::warmup, at_least(0), "Linear warm-up over so many counts, before the rest begins.")
                     .also({"warmup_steps", "warmup_epochs", "num_warmup_steps"}));
  keys.push_back(key("warmup_start_factor", &S::warmup_start_factor, between(0, 1),
                     "Factor at the start of the warm-up; 0: (t + 1) / warmup."));
  return keys;
}

std::vector<Key> shape_keys() {
  const Rule count = at_least(1);
  const Rule fraction = between(0, 1);
  std::vector<Key> keys;
  keys.push_back(key("step_size", &S::step_size, count, "Counts between two drops.").of({"step"}));
  keys.push_back(key("gamma", &S::gamma, at_least(0), "Factor of a drop.").of({"step", "multi_step", "exponential"}));
  keys.push_back(
      key("milestones", &S::milestones, count, "Counts of the drops; sequence: where the next schedule begins.")
          .of({"multi_step", "sequence"}));
  keys.push_back(key("factor", &S::factor, fraction, "Factor until total is reached; plateau: of a drop.")
                     .of({"constant", "plateau"})
                     .by_default("1/3; plateau 0.1"));
  keys.push_back(key("start_factor", &S::start_factor, between(1e-300, 1), "Factor at the start.")
                     .of({"linear"})
                     .by_default("1/3"));
  keys.push_back(key("end_factor", &S::end_factor, fraction, "Factor at the end.").of({"linear"}));
  keys.push_back(key("total", &S::total, count, "Counts until the end of the shape.")
                     .of({"constant", "linear", "polynomial", "one_cycle"})
                     .by_default("5; one_cycle: the whole run")
                     .also({"total_iters", "total_steps"}));
  keys.push_back(key("power", &S::power, at_least(0), "Exponent.").of({"polynomial"}));
  keys.push_back(key("t_max", &S::t_max, count, "Counts from the largest to the smallest rate.")
                     .of({"cosine"})
                     .by_default("the whole run after the warm-up"));
  keys.push_back(key("eta_min", &S::eta_min, at_least(0), "Smallest rate.").of({"cosine"}));
  return keys;
}

std::vector<Key> one_cycle_keys() {
  const std::vector<std::string> kind{"one_cycle"};
  std::vector<Key> keys;
  keys.push_back(key("max_lr", &S::max_lr, above(0), "Largest rate.").must());
  keys.push_back(key("pct_start", &S::pct_start, between(0, 1), "Share of the run that rises."));
  keys.push_back(
      key("anneal", &S::anneal, one_of({"cos", "linear"}), "Curve of the phases.").also({"anneal_strategy"}));
  keys.push_back(key("div_factor", &S::div_factor, above(0), "max_lr / rate at the start."));
  keys.push_back(key("final_div_factor", &S::final_div_factor, above(0), "Rate at the start / rate at the end."));
  keys.push_back(
      key("three_phase", &S::three_phase, anything(), "Falls to the start's rate first, then to the end's."));
  keys.push_back(key("cycle_momentum", &S::cycle_momentum, anything(), "Moves momentum (or beta1) the other way."));
  keys.push_back(key("base_momentum", &S::base_momentum, from_up_to(0, 1), "Smallest momentum."));
  keys.push_back(key("max_momentum", &S::max_momentum, from_up_to(0, 1), "Largest momentum."));
  for (Key& key : keys) key.kinds = kind;
  return keys;
}

std::vector<std::string> plateau_metrics() {
  std::vector<std::string> names = watchable_metrics();
  names.emplace_back("train.loss");
  return names;
}

std::vector<Key> plateau_keys() {
  std::vector<Key> keys;
  keys.push_back(
      key("metric", &S::metric, one_of(plateau_metrics()), "What must get better: train.loss or of eval.metrics."));
  keys.push_back(key("mode", &S::mode, one_of({"min", "max"}), "Whether smaller or larger is better."));
  keys.push_back(key("patience", &S::patience, at_least(0), "Evaluations without progress before a drop."));
  keys.push_back(key("threshold", &S::threshold, at_least(0), "Smallest change that is progress."));
  keys.push_back(key("threshold_mode", &S::threshold_mode, one_of({"rel", "abs"}), "Whether threshold is relative."));
  keys.push_back(key("cooldown", &S::cooldown, at_least(0), "Evaluations after a drop that don't count."));
  keys.push_back(key("min_lr", &S::min_lr, at_least(0), "Smallest rate."));
  keys.push_back(
      key("plateau_eps", &S::plateau_eps, at_least(0), "A drop smaller than this is left out.").also({"eps"}));
  for (Key& key : keys) key.kinds = {"plateau"};
  return keys;
}

void check_sequence(const S& schedule, const MapView& view) {
  if (schedule.schedules.empty()) view.fail("schedules", "is empty; a sequence has one schedule or more");
  if (schedule.milestones.size() + 1 != schedule.schedules.size()) {
    view.fail("milestones", fmt::format("has {} entries for {} schedules; expected {}", schedule.milestones.size(),
                                        schedule.schedules.size(), schedule.schedules.size() - 1));
  }
  const YamlNode& list = view.node.items[static_cast<size_t>(view.node.find("schedules"))];
  for (size_t i = 0; i < schedule.schedules.size(); ++i) {
    const std::string path = join_path(view.path, "schedules." + std::to_string(i));
    const MapView part{list.items[i], path};
    if (schedule.schedules[i].kind == "plateau") part.fail("kind", "plateau can't be part of a sequence");
  }
}

void check_schedule(void* object, const MapView& view) {
  S& schedule = *static_cast<S*>(object);
  constexpr double kPlateauFactor = 0.1;
  if (schedule.kind == "plateau" && !view.has("factor")) schedule.factor = kPlateauFactor;
  if (schedule.kind == "plateau" && schedule.factor >= 1) view.fail("factor", "must be below 1 for kind plateau");
  const auto& marks = schedule.milestones;
  const bool strict = schedule.kind == "sequence";
  for (size_t i = 1; i < marks.size(); ++i) {
    if (marks[i] < marks[i - 1] || (strict && marks[i] == marks[i - 1]))
      view.fail("milestones", "must be in ascending order");
  }
  if (schedule.kind == "multi_step" && marks.empty()) view.fail("milestones", "is missing or empty");
  if (schedule.kind == "sequence") check_sequence(schedule, view);
  if (schedule.base_momentum > schedule.max_momentum) view.fail("base_momentum", "is above max_momentum");
}

}  // namespace

const Schema& schedule_schema() {
  static const Schema schema = [] {
    Schema made;
    made.doc =
        "The learning rate over time, with PyTorch's names and defaults. Which keys there are depends on `kind`.";
    made.scalar_key = "kind";
    made.defaults = std::make_shared<S>();
    for (auto group : {common_keys, shape_keys, one_cycle_keys, plateau_keys}) {
      for (Key& key : group()) made.keys.push_back(std::move(key));
    }
    made.keys.push_back(section_list("schedules", &S::schedules, schedule_schema, anything().items(1),
                                     "The parts of a sequence, maps like this one.")
                            .of({"sequence"})
                            .must());
    discriminate(made, "kind", &S::kind);
    made.finish = check_schedule;
    return made;
  }();
  return schema;
}

}  // namespace lockstep

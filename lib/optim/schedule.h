// Learning-rate schedules in PyTorch's recursive forms (bit-equal doubles), used as a pure function of the step: lr(t)
// is what PyTorch's optimizer holds after t calls of scheduler.step(), whatever was asked before. t counts optimizer
// steps or epochs, as the caller likes; one Schedule per base learning rate, so one per parameter group.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// The schedule: section of a config, key for key (`per` and `metric` say what the caller counts and reports).
struct ScheduleSettings {
  std::string kind = "none";
  int64_t step_size = 1;                          // step
  std::vector<int64_t> milestones;                // multi_step, sequence (one fewer than schedules)
  double gamma = 0.1;                             // step, multi_step, exponential
  double factor = 1.0 / 3;                        // constant; plateau (PyTorch's default there is 0.1)
  double start_factor = 1.0 / 3, end_factor = 1;  // linear
  std::optional<int64_t> total;                   // constant, linear, polynomial: 5; one_cycle: the whole run
  double power = 1;                               // polynomial
  std::optional<int64_t> t_max;                   // cosine: the whole run (minus warm-up)
  int64_t t_0 = 10, t_mult = 1;    // cosine_warm_restarts: length of the first cycle, growth of the next ones
  double eta_min = 0;              // cosine, cosine_warm_restarts
  int64_t warmup = 0;              // steps of linear warm-up before any kind, which then starts with its own t = 0
  double warmup_start_factor = 0;  // 0: base * (t + 1) / warmup; else as SequentialLR([LinearLR(f, 1, warmup), ...])
  double max_lr = 0, pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;  // one_cycle
  std::string anneal = "cos";                                                   // cos | linear
  bool three_phase = false, cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  std::string mode = "min", threshold_mode = "rel";  // plateau: min | max, rel | abs
  int64_t patience = 10, cooldown = 0;
  double threshold = 1e-4, min_lr = 0, plateau_eps = 1e-8;
  std::vector<ScheduleSettings> schedules;  // sequence, chained
};

// What reduce-on-plateau remembers, for checkpoints.
struct PlateauState {
  double lr = 0;
  double best = std::numeric_limits<double>::infinity();
  int64_t bad = 0, cooldown = 0;
};

class ScheduleRule;
class PlateauRule;

class Schedule {
 public:
  Schedule(std::unique_ptr<ScheduleRule> rule, double base_lr);  // see make_schedule
  Schedule(Schedule&&) noexcept;
  Schedule& operator=(Schedule&&) noexcept;
  ~Schedule();

  // Costs the steps since the last t, or t where it went back. Throws Error: t < 0, one_cycle beyond its total.
  double lr(int64_t t);
  // What one_cycle wants as momentum (or beta1); empty: leave the optimizer's alone.
  std::optional<double> momentum(int64_t t) const;

  // Reduce-on-plateau: one value of the metric after each evaluation. It counts during warm-up too. Throws Error:
  // another kind. Plateau is stateful: lr(t) is the reduced rate for every t after the warm-up.
  bool wants_metric() const { return plateau_ != nullptr; }
  void report(double metric);
  PlateauState plateau_state() const;
  void set_plateau_state(const PlateauState& state);

 private:
  std::unique_ptr<ScheduleRule> rule_;
  PlateauRule* plateau_ = nullptr;  // inside rule_
  double base_lr_, lr_ = 0;
  int64_t t_ = -1;  // lr_ belongs to it; -1: nothing computed yet
};

// `run_length`: how many t the run has, 0 if unknown; cosine and one_cycle take it (minus warm-up) as their default.
// Throws Error naming the key: unknown kind (lists them), values out of range, one_cycle shorter than the run.
Schedule make_schedule(const ScheduleSettings& settings, double base_lr, int64_t run_length = 0);

std::vector<std::string> schedule_kinds();

}  // namespace lockstep

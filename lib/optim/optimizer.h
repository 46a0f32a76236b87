// An optimizer over the flat parameter arena: one fused kernel call per range of a group, state arenas of the same
// layout, nothing allocated in a step. One file per kind (sgd.cpp, adam.cpp, ...), made by optimizer_factory.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/optimizer_ops.h"
#include "backend/slice_norms.h"
#include "core/buffer.h"
#include "optim/parameter_groups.h"
#include "optim/settings.h"

namespace lockstep {

// A state arena, for checkpoints: sliced as the parameter arena. Named as in PyTorch: momentum_buffer (sgd, rmsprop),
// exp_avg, exp_avg_sq, max_exp_avg_sq (adam, adamw), square_avg, acc_delta (adadelta), grad_avg (rmsprop), sum
// (adagrad); lars as sgd, lamb as adam. Current where the optimizer's groups are: of a sharded update, this rank's
// part.
struct StateArray {
  std::string_view name;
  std::span<float> values;
};

// What every kind is built from. `allocate` gives zeroed memory where `ops` compute.
struct OptimizerInit {
  OptimizerSettings settings;  // resolved
  std::vector<ParameterGroup> groups;
  size_t arena_size = 0;  // floats
  const OptimizerOps& ops;
  std::function<Buffer(size_t bytes)> allocate;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update of every group's parameters; counts the step. Both spans are whole arenas: throws Error if not.
  void step(std::span<float> parameters, std::span<const float> gradients);
  // The same where gradients are made as they are used: `gradient` gives those of a group's range, valid until the next
  // call; `updated` hears that its parameters are new. Throws Error for kinds with numbers_per_parameter().
  using GradientOf = std::function<const float*(const ParameterRange&)>;
  using Updated = std::function<void(const ParameterRange&)>;
  void step(std::span<float> parameters, const GradientOf& gradient, const Updated& updated);

  int groups() const { return static_cast<int>(groups_.size()); }
  const ParameterGroup& group(int index) const { return groups_[checked(index)]; }  // lr as built, set_lr or not
  double lr(int group) const { return lr_[checked(group)]; }
  void set_lr(int group, double lr);  // throws Error: negative, not finite

  // SGD's and RMSprop's momentum, Adam's beta1: what one-cycle moves against the learning rate.
  virtual bool has_momentum() const { return true; }
  // An update is asked for parameter by parameter, each with its own numbers: too many for a recorded step.
  virtual bool numbers_per_parameter() const { return false; }
  double momentum(int group) const;               // throws Error: the kind has none
  void set_momentum(int group, double momentum);  // throws Error: outside [0, 1), no buffer was allocated for it

  std::span<const StateArray> state() const { return state_; }
  int64_t step_count() const { return step_count_; }
  void set_step_count(int64_t count);  // after the state arrays were restored
  const OptimizerSettings& settings() const { return settings_; }

 protected:
  explicit Optimizer(OptimizerInit init);   // throws Error: ranges outside the arena or overlapping
  float* add_state(std::string_view name);  // in the constructor only; zeros
  float* add_scratch(size_t floats);        // likewise, but no part of the state
  const OptimizerOps& ops() const { return ops_; }
  std::unique_ptr<SliceNorms> range_norms() const;  // of all groups' ranges, by index; in the constructor only
  size_t arena_size() const { return arena_size_; }

  struct Range {  // what one kernel call works on
    size_t offset, count;
    float* p;
    const float* g;
    double lr, weight_decay, momentum;
    bool adapt;        // with a trust ratio, where the kind has one
    size_t index = 0;  // among the ranges of all groups
  };
  // Before update is called for any range: for kinds that need to have seen all of them. prepare is called for each,
  // then prepared once, with the arenas.
  virtual void prepare(const Range& /*range*/) {}
  virtual void prepared(const float* /*parameters*/, const float* /*gradients*/) {}
  // Step number step_count() (from 1 in the first step). `state + offset` belongs to p[0].
  virtual void update(const Range& range) = 0;
  virtual bool can_gain_momentum() const { return true; }  // false: no buffer for it

  static float* at_offset(float* state, size_t offset) { return state == nullptr ? nullptr : state + offset; }

 private:
  template <class Work>
  void for_each_range(const Work& work) const;                  // p and g are left to it
  void check_arena(size_t parameters, size_t gradients) const;  // throws Error
  size_t checked(int group) const;                              // throws Error: no such group

  const OptimizerSettings settings_;
  std::vector<ParameterGroup> groups_;
  std::vector<double> lr_, momentum_;  // per group
  size_t arena_size_;
  const OptimizerOps& ops_;
  std::function<Buffer(size_t)> allocate_;
  std::vector<Buffer> buffers_;
  std::vector<StateArray> state_;
  int64_t step_count_ = 0;
};

// `settings` may be unresolved. Throws Error for an unknown kind (lists them) and everything resolve() refuses.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, std::vector<ParameterGroup> groups,
                                          size_t arena_size, const OptimizerOps& ops,
                                          const std::function<Buffer(size_t bytes)>& allocate = Buffer::host);

}  // namespace lockstep

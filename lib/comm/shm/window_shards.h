// Shards of arrays in shared windows of one node (comm/shards.h).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "comm/shards.h"
#include "comm/shm/shared_reduction.h"

namespace lockstep {

class WindowShards final : public Shards {
 public:
  // The window that this rank's values lie in; null: none. Answers all ranks alike.
  using WindowOf = std::function<const SharedWindow*(std::span<const float>)>;

  // meeting outlives this object.
  WindowShards(Rendezvous& meeting, WindowOf window_of)
      : meeting_(meeting), window_of_(std::move(window_of)), arrays_(static_cast<size_t>(meeting.size())) {}

  bool reach(std::span<const float> values) const override { return window_of_(values) != nullptr; }
  Shard of(size_t count, int rank) const override { return slice_of(0, count, rank, meeting_.size()); }
  void begin(std::span<const float> terms) override;
  void sum(size_t first, std::span<float> out) override;
  void store(std::span<const float> values) override;
  void end() override { meeting_.sync(); }

 private:
  const SharedWindow& reached(std::span<const float> values) const;  // throws Error: in no window

  Rendezvous& meeting_;
  WindowOf window_of_;
  const SharedWindow* terms_ = nullptr;  // between begin and end
  size_t first_term_ = 0;                // floats from the window's begin
  std::vector<const float*> arrays_;
};

}  // namespace lockstep

// A model as the trainer sees it: parameters once, and a bound graph for every batch size and phase that comes up.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "nn/graph.h"
#include "nn/model_spec.h"

namespace lockstep {

class Network {
 public:
  // Binds the training graph for `batch`, which decides how parameters are stored. Throws Error for a model that does
  // not fit the samples, and for one with nothing to train. Nothing but place() may be called before lay_out.
  // across_ranks: BindContext's, outlives the network. precision: of training and evaluation (f32, bf16, f16).
  Network(ModelSpec spec, Shape sample, Backend& backend, int64_t batch, const Freeze& freeze = {},
          StatisticsReducer* across_ranks = nullptr, DType precision = DType::f32);
  // As ParameterStore::lay_out; where a communicator allocates this is a collective call.
  void lay_out(const ParameterStore::Allocate& gradients, const ParameterStore::Allocate& values = {});

  // The first half of lay_out: places the parameters and takes no memory for them. Before the second half only the
  // store's names and sizes, output_shape and arena_bytes mean something.
  void place() { store_.place(first_->finish_order()); }
  // What graph(phase, batch) would need of the activation arena. Binds a graph for the answer; allocates no arena.
  size_t arena_bytes(Phase phase, int64_t batch);

  ParameterStore& store() { return store_; }
  const ParameterStore& store() const { return store_; }
  const Shape& sample_shape() const { return sample_; }
  Shape output_shape() const;  // of one sample
  void initialize(Generator& generator);
  std::vector<bool> norm_parameters() const;  // by ParameterId: belongs to a normalisation layer

  // Bound on first use (which allocates), the same object afterwards. All graphs share one activation arena, so only
  // one of them may be between forward and backward.
  Graph& graph(Phase phase, int64_t batch);
  size_t activation_bytes() const { return arena_.bytes(); }
  // Every training graph's layers, see Graph::trace; those that are bound later, too.
  void trace(TraceRow* row);

 private:
  void fit_arena(Graph& graph);

  ModelSpec spec_;
  Shape sample_;
  Backend& backend_;
  StatisticsReducer* across_ranks_;
  DType precision_;
  ParameterStore store_;
  Buffer arena_;
  std::map<std::pair<Phase, int64_t>, std::unique_ptr<Graph>> graphs_;
  Graph* first_ = nullptr;
  TraceRow* trace_ = nullptr;
};

}  // namespace lockstep

#include "nn/network.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

static void check_something_trains(const ParameterStore& store) {
  if (store.trainable_parameters() > 0) return;
  if (store.parameters().empty()) throw_error("nothing to train: no layer of the model has parameters");
  throw_error("nothing to train: all {} parameters are frozen (trainable: false)", store.parameters().size());
}

Network::Network(ModelSpec spec, Shape sample, Backend& backend, int64_t batch, const Freeze& freeze,
                 StatisticsReducer* across_ranks, DType precision)
    : spec_(std::move(spec)),
      sample_(sample),
      backend_(backend),
      across_ranks_(across_ranks),
      precision_(precision),
      store_(backend.memory()) {
  auto graph = std::make_unique<Graph>(build_layers(spec_, sample_), sample_, batch, Phase::training, backend_, store_,
                                       freeze, across_ranks_, precision_);
  check_something_trains(store_);
  first_ = graph.get();
  graphs_.emplace(std::pair{Phase::training, batch}, std::move(graph));
}

void Network::lay_out(const ParameterStore::Allocate& gradients, const ParameterStore::Allocate& values) {
  store_.lay_out(first_->finish_order(), gradients, values);
  fit_arena(*first_);
}

size_t Network::arena_bytes(Phase phase, int64_t batch) {
  const auto found = graphs_.find({phase, batch});
  if (found != graphs_.end()) return found->second->arena_bytes();
  return Graph(build_layers(spec_, sample_), sample_, batch, phase, backend_, store_, Freeze{}, across_ranks_,
               precision_)
      .arena_bytes();
}

Shape Network::output_shape() const { return first_->output().desc.shape.without_front(); }

void Network::initialize(Generator& generator) { first_->initialize(generator); }

std::vector<bool> Network::norm_parameters() const { return first_->norm_parameters(); }

Graph& Network::graph(Phase phase, int64_t batch) {
  const std::pair key{phase, batch};
  const auto found = graphs_.find(key);
  if (found != graphs_.end()) return *found->second;
  auto graph = std::make_unique<Graph>(build_layers(spec_, sample_), sample_, batch, phase, backend_, store_, Freeze{},
                                       across_ranks_, precision_);
  fit_arena(*graph);
  if (phase == Phase::training) graph->trace(trace_);
  return *graphs_.emplace(key, std::move(graph)).first->second;
}

void Network::trace(TraceRow* row) {
  trace_ = row;
  for (auto& [key, graph] : graphs_) {
    if (key.first == Phase::training) graph->trace(row);
  }
}

void Network::fit_arena(Graph& graph) {
  if (graph.arena_bytes() > arena_.bytes()) {
    arena_ = Buffer();  // free first: two large arenas need not fit
    arena_ = backend_.allocate(graph.arena_bytes());
    for (auto& [key, other] : graphs_) other->attach(arena_.data());
  }
  graph.attach(arena_.data());
}

}  // namespace lockstep

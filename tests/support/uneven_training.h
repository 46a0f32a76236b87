// Trains a geometry of support/uneven.h with the real trainer and compares every step.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "core/error.h"
#include "support/uneven.h"
#include "train/trainer.h"

namespace lockstep::test {

// Throws Error, naming the first step that is wrong; `worst` gets the largest relative distance of a weight. True if
// there was something to train.
template <class Geometry>
bool train_and_compare(const Geometry& geometry, const std::string& yaml, Backend& backend, Communicator& comm,
                       double& worst) {
  const Config config = parse_config(yaml, "uneven.yaml", {});
  RunLog log("", false);
  std::unique_ptr<Trainer> trainer;
  const bool nothing = geometry.deal(0).empty();
  try {
    trainer = std::make_unique<Trainer>(config, backend, comm, log);
  } catch (const Error& error) {
    if (nothing && std::string(error.what()).starts_with("every loader is empty")) return false;
    throw;
  }
  if (nothing) throw_error("there is nothing to train, but the trainer did not say so");
  ParameterStore& store = trainer->network().store();
  double weight = 0.25;
  const float start = 0.25f;
  store.set_canonical(0, {&start, 1});
  int64_t done = 0;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const Expected expected = expected_epoch(geometry.deal(epoch), geometry.accumulate, weight);
    const auto steps = static_cast<int64_t>(expected.weights.size());
    if (trainer->plan().epoch().steps() != steps)
      throw_error("expected {} steps an epoch, found {}", steps, trainer->plan().epoch().steps());
    trainer->begin_epoch(epoch);
    for (int64_t k = 0; k < steps; ++k, ++done) {
      trainer->train_step(k);
      const auto at = static_cast<size_t>(k);
      if (trainer->plan().epoch().step_samples(k) != expected.samples[at])
        throw_error("step {} of epoch {}: expected {} samples, found {}", k, epoch, expected.samples[at],
                    trainer->plan().epoch().step_samples(k));
      weight = expected.weights[at];
      const double found = store.canonical_value(0)[0], error = std::abs(found - weight) / (1 + std::abs(weight));
      worst = std::max(worst, error);
      if (!(error <= 1e-5))
        throw_error("step {} of epoch {}: expected the weight {}, found {}", k, epoch, weight, found);
    }
  }
  const GradientSynchronizer& sync = trainer->synchronizer();
  const int64_t reductions = comm.size() == 1 ? 0 : static_cast<int64_t>(sync.buckets()) * done;
  if (sync.all_reduces() != reductions)
    throw_error("expected {} all-reduces, found {}", reductions, sync.all_reduces());
  float mine = store.canonical_value(0)[0];
  const float lead = mine;
  comm.broadcast(std::as_writable_bytes(std::span(&mine, 1)), 0);
  if (mine != lead) throw_error("the weight is {} on rank 0 and {} on rank {}", mine, lead, comm.rank());
  return true;
}

}  // namespace lockstep::test

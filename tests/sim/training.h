// Trains a small configuration on the CPU or on a simulated GPU, in this process, as `lockstep train` does it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/runtime/control.h"
#include "support/shared_folder.h"
#include "train/model_digest.h"
#include "train/resources.h"
#include "train/trainer.h"

namespace lockstep::test {

using Overrides = std::vector<std::string>;

inline Overrides with(Overrides overrides, const Overrides& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

struct GpuRun {
  std::vector<double> losses, validation;  // on rank 0, of every step and of every validation
  std::vector<float> weights, optimizer;   // in PyTorch's layout, all parameters train
  std::string digest, communicator;
  int64_t steps = 0;
  int64_t recorded = 0;  // micro-steps that were started as recordings

  // overrides: device.kind and all else that the configuration does not say. One thread computes, every step is logged.
  GpuRun(const MpiEnvironment& env, const std::string& yaml, std::vector<std::string> overrides, const std::string& dir,
         const ResumeRequest& resume = {}) {
    overrides.insert(overrides.begin(), {"run.dir=" + dir, "log.every=1", "device.threads=1"});
    const Config config = parse_config(yaml, "training.yaml", overrides);
    const Resources resources = claim_resources(config, env);
    communicator = resources.communicator->name();
    {
      RunLog log(dir, env.rank() == 0);
      Trainer trainer(config, *resources.backend, *resources.communicator, log, resume);
      steps = trainer.run().steps;
      if (trainer.recordings() != nullptr) recorded = trainer.recordings()->starts();
      const ParameterStore& store = trainer.network().store();
      for (size_t id = 0; id < store.parameters().size(); ++id) {
        const std::vector<float> values = store.canonical_value(static_cast<ParameterId>(id));
        weights.insert(weights.end(), values.begin(), values.end());
      }
      for (const StateArray& array : trainer.optimizer().state()) {
        const std::vector<float> values = store.memory().downloaded(array.values);
        for (const Parameter& p : store.parameters()) {
          std::vector<float> canonical(static_cast<size_t>(p.shape.numel()));
          ParameterStore::to_canonical(p, std::span(values).subspan(p.offset, p.count), canonical);
          optimizer.insert(optimizer.end(), canonical.begin(), canonical.end());
        }
      }
      digest = model_digest(store);
    }
    if (env.rank() == 0) read(dir + "/metrics.jsonl");
    resources.communicator->barrier();
  }

 private:
  void read(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const nlohmann::json event = nlohmann::json::parse(line);
      const auto number = [](const nlohmann::json& value) { return value.is_null() ? NAN : value.get<double>(); };
      if (event["event"] == "step") losses.push_back(number(event["loss"]));
      if (event["event"] == "eval") validation.push_back(number(event["loss"]));
    }
  }
};

// The largest difference, beside what is compared with.
template <class Number>
double difference(const std::vector<Number>& a, const std::vector<Number>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    if (std::isnan(x) != std::isnan(y)) return INFINITY;
    if (!std::isnan(x)) most = std::max(most, std::abs(x - y) / (1 + std::abs(y)));
  }
  return most;
}

inline const std::string kMlp =
    "model: {layers: [{linear: 12}, relu, {dropout: 0.3}, {linear: 9}, tanh, {linear: 3}]}\n"
    "data:\n"
    "  train: {kind: synthetic, name: random, samples: 47, shape: [7], classes: 3, seed: 5}\n"
    "  val: {kind: synthetic, name: random, samples: 37, shape: [7], classes: 3, seed: 6}\n"
    "train: {epochs: 2, batch_size: 3}\n"
    "optimizer: {kind: sgd, lr: 0.1}\n";

}  // namespace lockstep::test

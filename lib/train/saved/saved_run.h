// What a run has left, as a model: the config it was trained with, the state of its training and the weights. For the
// commands that come after training: eval, predict, export, inspect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "nn/network.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config.h"

namespace lockstep {

struct SavedRun {
  std::string path;  // of the checkpoint
  int64_t step = 0;  // optimizer steps done
  State state;
  Config config;                         // the run's, with overrides
  std::optional<Checkpoint> checkpoint;  // of rank 0; the others have what is above
};

// path: as read_checkpoint takes it. overrides: --set pairs; Error for keys that would make another model or another
// training of it: only data, device, distributed and eval may be changed. The number of ranks is free.
SavedRun read_saved_run(const std::string& path, const std::vector<std::string>& overrides);
// The same on all ranks: rank 0 reads, the others hear from it. Collective; the same Error on all.
SavedRun read_saved_run(const std::string& path, const std::vector<std::string>& overrides, Communicator& communicator);

// The shape of a sample that the model was trained on. Checkpoints of older versions don't say: then the training data
// are read.
Shape sample_shape(const SavedRun& run);

// The network, bound as in training, so that it computes the same bits, with the weights that the run evaluates: their
// average where it keeps one (train.ema). Collective; Error on all ranks for a model that the samples don't fit.
std::unique_ptr<Network> load_network(const SavedRun& run, const Shape& sample, Backend& backend,
                                      Communicator& communicator);
// The file of those weights in a checkpoint: "ema" or "model".
const TensorFile& evaluated_weights(const Checkpoint& checkpoint, const Config& config);

// "runs/mnist/checkpoints/step-000000500 (500 steps)", and that its weights are the averaged ones.
std::string describe(const SavedRun& run);

}  // namespace lockstep

// model.init_from: weights by name from a file into a network, to start from instead of random ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/parameter_store.h"
#include "train/checkpoint/tensor_file.h"
#include "train/config.h"

namespace lockstep {

struct InitReport {
  std::string path;
  int64_t parameters = 0, buffers = 0;  // loaded
  int64_t values = 0;                   // numbers in them
  std::vector<std::string> missing;     // parameters and buffers that the file lacks: they keep what they had
  std::vector<std::string> unused;      // tensors that the model lacks, by their name in the file
  std::vector<std::string> left_out;    // renamed to null
  std::string text() const;             // a few lines for people
};

// `store` is laid out. Parameters and buffers are set in PyTorch's layout, frozen ones too. Error, with the place in
// the config in front: the file cannot be read, a shape differs, two tensors get one name; strict: any missing or
// unused (num_batches_tracked may be missing). Then nothing has been set.
InitReport init_from(const TensorFile& file, const InitFromConfig& config, ParameterStore& store);
// The same for the file that the config names: a .safetensors file, or whatever read_checkpoint takes.
InitReport init_from(const Config& config, ParameterStore& store);

}  // namespace lockstep

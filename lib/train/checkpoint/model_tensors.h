// The model's arrays as the tensors of a checkpoint, under PyTorch's names and in its layouts, and back. Arrays that
// are sliced like the parameter arena (weights, their average, optimizer state) all go through the same two functions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/parameter_store.h"
#include "train/checkpoint/snapshot.h"
#include "train/checkpoint/tensor_file.h"

namespace lockstep {

// Values that a snapshot's tensors are made of, held by `owner`; without one they are training's own, good for sizes.
struct Copy {
  std::shared_ptr<const std::vector<float>> owner;
  std::span<const float> values;
};

// Copies of arrays for a snapshot. Memory is used again once nobody holds the copy that was in it, so that regular
// checkpoints take none anew.
class CopyPool {
 public:
  Copy copy(const Memory& memory, std::span<const float> values);
  Copy copy(std::span<const float> values) { return copy(host_memory(), values); }

 private:
  std::vector<std::shared_ptr<std::vector<float>>> blocks_;
};

// One tensor per parameter that `arena` reaches (frozen ones have no optimizer state), named NAME + suffix. `store`
// must outlive the sources.
void add_parameter_tensors(const ParameterStore& store, const Copy& arena, const std::string& suffix,
                           std::vector<TensorSource>& tensors);
// prefix + NAME; counters ("num_batches_tracked") as int64, as in PyTorch.
void add_buffer_tensors(const ParameterStore& store, const Copy& values, const std::string& prefix,
                        std::vector<TensorSource>& tensors);

// The same arrays from a file. Error: a tensor missing, or of another shape.
void read_parameter_tensors(const TensorFile& file, const ParameterStore& store, const std::string& suffix,
                            std::span<float> arena);  // in the store's memory
void read_buffer_tensors(const TensorFile& file, const ParameterStore& store, const std::string& prefix,
                         std::span<float> values);  // on the host
// Error unless the file holds exactly `expected` tensors: what is left over belongs to another model or optimizer.
void check_tensor_count(const TensorFile& file, size_t expected);

}  // namespace lockstep

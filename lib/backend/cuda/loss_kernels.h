// What the loss plans (loss.cpp) ask of the kernels (loss_kernels.cu). All pointers are device memory; work is queued
// on the stream. parts: room for reduction_blocks + 1 of Sums, the result is parts[0].
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/loss_ops.h"

namespace lockstep::cuda {

struct Sums {
  double loss, weight;
  int64_t bad_row;  // the first row whose label is no class; no_bad_row: none
};
constexpr int64_t no_bad_row = INT64_MAX;

// total = sums[0], or where `more` the sum of both.
void add_sums(cudaStream_t stream, const Sums* sums, bool more, Sums* total);

struct Elements {
  size_t rows, columns;
  const float *output, *target;
  double scale;
  float* gradient;  // null: not wanted
};
// weights: LogisticLoss's, on the device, or null.
void elementwise_loss(cudaStream_t stream, const LossSpec& spec, const float* weights, const Elements& elements,
                      Sums* parts);

struct Logits {
  size_t rows, classes;
  const float* output;
  const int64_t* labels;       // one of labels and
  const float* probabilities;  // probabilities
  const float* class_weights;  // null: 1
  double smoothing;            // label_smoothing
  double weight_sum;           // of the class weights
  int64_t ignore_index;
  double scale;
  float* gradient;  // null: not wanted
};
void cross_entropy(cudaStream_t stream, const Logits& logits, Sums* parts);

}  // namespace lockstep::cuda

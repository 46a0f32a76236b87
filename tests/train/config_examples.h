// Valid configs that between them give every key.
#pragma once

#include <string>
#include <vector>

#include "config_support.h"

namespace lockstep::test {

inline const std::vector<std::string>& examples() {
  static const std::vector<std::string> texts{
      with_sections(""),
      "model: mnist_convnet\n"
      "data:\n"
      "  train: {kind: idx, images: datasets/mnist/a.gz, labels: 'b c.gz', normalize: {mean: 0.1307, std: 0.3081}}\n"
      "  val: {kind: idx, images: \"we\\\"ird\\\\ \xC3\xA4#: [x]\", labels: null.gz, first: 3, count: 7}\n"
      "  prefetch: 0\n"
      "run: {dir: runs/mnist, seed: 18446744073709551615, seed_per_rank: true, stop_signals: "
      "[SIGUSR2, SIGINT], max_time: 1h30m, time_margin: 0.5, requeue: true}\n"
      "sampler: {shuffle: false, seed: 3, reshuffle: false, generator: global, uneven: pad, drop_last: true, "
      "early_end: stop}\n"
      "train: {epochs: 3, max_steps: 51, global_batch_size: 32, accumulate: 4, label_smoothing: 0.1, class_weights: "
      "[1, 0.1],\n"
      "        early_stopping: {metric: val.f1_weighted, patience: 2, min_delta: 1e-3, mode: max},\n"
      "        ignore_index: -1, clip_norm: 1e-300, clip_norm_type: inf, clip_value: 0.3, "
      "on_nonfinite: skip, replica_check: 100}\n"
      "optimizer: {kind: adamw, lr: 1e-4, weight_decay: 0.01, betas: [0.85, 0.95], eps: 1e-7, amsgrad: true, "
      "decay_norm_and_bias: false, groups: [{match: [norm, 'fc*.weight'], lr: 0.3}, {match: [bias], weight_decay: "
      "0}, {match: ['conv*'], trainable: false}]}\n"
      "schedule: {kind: sequence, per: epoch, milestones: [3, 9], schedules: [{kind: linear, total: 3}, cosine, {kind: "
      "sequence, "
      "milestones: [2], schedules: [{kind: step, step_size: 2, gamma: 0.7}, exponential]}]}\n"
      "eval: {every: 200 steps, batch_size: 10, at_start: true, metrics: [f1, auroc, loss, top_5]}\n"
      "checkpoint: {every: 2 epochs, keep: 5, keep_every: 100, keep_best: false, best: val.auroc, on_error: warn, "
      "background: false}\n"
      "log: {every: 1, per_rank: true, indices: true, every_micro_step: true, watch: [\"value:0.weight[0,0]\", "
      "checksum:fc1.weight]}\n"
      "distributed: {world_size: 2, backend: mpi, sync: false, timeout: 2.5, average: ranks, overlap: false, "
      "bucket_mb: 0.5, first_bucket_mb: 0}\n"
      "device: {kind: cpu, threads: 2, convolution: winograd, flush_denormals: false}\n",
      "data: {train: {kind: csv, file: 'shards/part-{rank}.csv', features: [a, '1', \"\xC3\xA4\"], target: y, header: "
      "true}}\n"
      "model:\n"
      "  layers: [{conv2d: {out: 8, kernel: [3, 1], stride: [1, 2], padding: 1, groups: 2, dilation: 1, bias: false}, "
      "name: c},\n"
      "    relu, {leaky_relu: 0.3}, {gelu: {tanh_approximation: true}}, tanh, sigmoid, {max_pool2d: {kernel: 3, "
      "stride: 2}},\n"
      "    {avg_pool2d: 2}, {adaptive_avg_pool2d: [1, 2]}, {adaptive_max_pool2d: 3}, {add: c, input: '3', name: 'odd "
      "name: x'},\n"
      "    {dropout: {p: 0.1, torch_stream: true}}, {batch_norm: {momentum: null, eps: 0.1}}, {layer_norm: [3, 4]},\n"
      "    {group_norm: {groups: 2, affine: false}}, softmax, flatten, {linear: {out: 3, bias: false}}]\n"
      "train: {loss: smooth_l1, beta: 0.5, reduction: sum}\n"
      "optimizer: {kind: sgd, momentum: 0.9, nesterov: true}\n"
      "schedule: {kind: one_cycle, max_lr: 0.1, total: 100, anneal: linear, three_phase: true, warmup: 5}\n"
      "eval: {every: never}\n",
      "model: {layers: [{linear: 1}]}\n"
      "data: {train: {kind: synthetic, name: teacher, samples: 64, classes: 3, shape: [1, 2, 3], seed: 9, "
      "seed_per_rank: true},\n"
      "       val: {kind: npy, x: a.npy, y: b.npy}}\n"
      "optimizer: {kind: rmsprop, momentum: 0.1, centered: true, alpha: 0.5, maximize: true}\n"
      "train: {loss: bce_with_logits, class_weights: [2]}\n"
      "schedule: {kind: plateau, mode: max, metric: val.accuracy, factor: 0.3, patience: 0, threshold_mode: abs}\n",
      with_sections("optimizer: {kind: adagrad, lr_decay: 0.1, initial_accumulator_value: 1e-3}\nschedule: {kind: "
                    "polynomial, power: 2}\n"),
      with_sections("optimizer: {kind: adadelta, rho: 0.8}\nschedule: {kind: multi_step, milestones: [1, 1, 7]}\n"),
      with_sections(
          "optimizer: {kind: lars, momentum: 0.9, trust_coefficient: 0.02, lr_reference_batch: 256}\ntrain: {ema: "
          "0.99}\ndistributed: {batch_norm: sync}\n"),
      with_sections("optimizer: {kind: lamb, betas: [0.8, 0.9], adapt_norm_and_bias: true, lr_reference_batch: 64, "
                    "lr_scaling: sqrt}\ndistributed: {batch_norm: average}\n"),
      with_sections("schedule: {kind: constant, factor: 0.3333333333333333}\n")};
  return texts;
}

}  // namespace lockstep::test

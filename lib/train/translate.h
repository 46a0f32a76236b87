// From the config's structs to those of each folder, which know nothing of the config file.
#pragma once

#include <memory>

#include "data/augmentation.h"
#include "data/data_plan.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "data/settings.h"
#include "dist/gradient_synchronizer.h"
#include "dist/virtual_ranks.h"
#include "nn/network.h"
#include "optim/optimizer.h"
#include "train/config.h"

namespace lockstep {

// The seed of the script's global generator on this rank.
uint64_t initial_seed(const Config& config, int rank);
ModelSpec model_spec(const Config& config);  // presets expanded
// Paths resolved, {rank} in them too.
DatasetSettings dataset_settings(const Config& config, const DatasetConfig& data, int rank);
// `script` is the global generator of the script that the config stands for: augmented sets (noise drawn after its
// manual_seed) go on drawing from it, all others have seeds of their own.
std::unique_ptr<Dataset> make_dataset(const Config& config, const DatasetConfig& data, int rank, Generator& script);
// Of what is read from the training set. Throws Error where its samples are no images; null: nothing to change.
std::unique_ptr<Augmentation> make_augmentation(const Config& config, const Dataset& train, int rank);
// own: the samples of each rank where every rank has data of its own, else empty. Throws Error for rules of sampling
// that such data can't follow.
DataPlanSpec data_plan_spec(const Config& config, int64_t samples, std::vector<int64_t> own, int64_t world_size);
SamplerSettings sampler_settings(const Config& config, const Generator& after_initialisation);
LossSpec loss_spec(const TrainConfig& config);
SyncSettings sync_settings(const DistributedConfig& config, const VirtualRanks& ranks);
OptimizerSettings optimizer_settings(const Config& config);
Freeze frozen_parameters(const Config& config);  // by the groups with trainable: false

// optimizer.lr_reference_batch: every rate of `settings` (resolved) times global_batch / reference, or the root of that
// (Goyal et al. 2017, arXiv:1706.02677; Krizhevsky 2014, arXiv:1404.5997). Returns what was done, for people: "lr 0.8 =
// 0.1 x 256/32 (linear)"; empty where nothing is asked for. Throws Error: one_cycle sets its own rate.
std::string scale_learning_rates(const Config& config, int64_t global_batch, OptimizerSettings& settings);

// The loss weight of every sample where it is the same for all (so that the global denominator is known before the
// forward pass); 0 where it depends on the targets: class weights, ignored labels.
double known_weight_per_sample(const LossSpec& loss, const Dataset& dataset);

// log.noise_scale measures means of samples. Throws Error where the gradients are none: unreduced, unequal weights
// (weight_per_sample: known_weight_per_sample), distributed.average: ranks.
void check_noise_scale(const Config& config, double weight_per_sample);

// Throws Error unless the network's output suits the data's targets under this loss.
void check_output_fits(const Shape& output, const Dataset& dataset, const std::string& loss);

}  // namespace lockstep

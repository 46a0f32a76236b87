// The config file as plain structs: every key, its default, nothing else. config_load.cpp fills them from a YAML tree
// (yaml_parse.cpp alone sees yaml-cpp); the tables of config_keys_*.cpp are what parsing, printing and docs/config.md
// share. Members named `where` hold file:line:column, or --set KEY, for messages of later stages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/loss_ops.h"
#include "data/dataset.h"
#include "nn/model_spec.h"

namespace lockstep {

// "90", "1h30m", "2d": a length of time.
struct Duration {
  double seconds = 0;
  bool operator==(const Duration& other) const = default;
};

struct RunConfig {
  std::string dir = "runs/default";  // everything a run writes lies below this
  uint64_t seed = 42;                // initialisation, dropout; `manual_seed` of a PyTorch script
  bool seed_per_rank = false;        // initialise rank r from seed + r (the broadcast makes them equal again)
  // What ends the run early, see stop_request.h.
  std::vector<std::string> stop_signals{"SIGTERM", "SIGUSR1"};
  std::optional<Duration> max_time;  // since the start of the program
  Duration time_margin{60};          // before Slurm's time limit
  bool requeue = false;              // then puts the Slurm job back into the queue
};

// One data set. kind: idx | csv | npy | synthetic | toy
struct DatasetConfig {
  std::string kind;
  // {rank} in the name of a file stands for the rank's number: every rank then holds its own samples (no sharding).
  std::string images, labels;         // idx (.gz allowed)
  std::string file;                   // csv
  std::vector<std::string> features;  // csv: column names or indices; empty: all but the target
  std::string target;                 // csv: column name or index; empty: the last
  std::string x, y;                   // npy
  std::string name;                   // synthetic: random | blobs | teacher | regression | ... ; see docs
  int64_t samples = 0, classes = 0;   // synthetic; classes also checks labels where > 0
  std::vector<int64_t> shape;         // synthetic: sample shape
  std::optional<bool> header;         // csv: the first line names the columns; empty: if it holds no number
  int64_t augment = 1;                // toy: copies of the points, each with its own noise
  int64_t target_width = 1;           // synthetic: values per sample
  std::vector<double> values;         // synthetic: the targets, repeated over the samples
  uint64_t seed = 0;
  bool seed_per_rank = false;       // synthetic: seed + rank, every rank holds its own samples (no sharding)
  std::optional<double> mean, std;  // normalize: (x - mean) / std after scaling to [0,1] where the format is u8
  int64_t first = 0, count = -1;    // a contiguous subset; -1: to the end
  std::string where;                // file:line:column
  // A program's own data set, in place of the kinds that a file can name; called once on every rank.
  std::function<std::unique_ptr<Dataset>(int rank)> make = nullptr;
};

struct AugmentationConfig {  // of training images; data/augmentation.h
  int64_t crop_padding = 0;
  double flip = 0;
};

struct DataConfig {
  DatasetConfig train;
  std::optional<DatasetConfig> val;
  AugmentationConfig augmentation;
  int64_t prefetch = -1;  // batches assembled ahead by a thread; -1: auto, 0: none
};

struct SamplerConfig {
  bool shuffle = true;
  uint64_t seed = 0;
  bool reshuffle = true;              // false: epoch 0's order every epoch (a missing set_epoch)
  std::string generator = "sampler";  // sampler: from (seed, epoch) | global: PyTorch's DataLoader(shuffle=True)
  std::string uneven = "exact";       // exact | pad | drop
  bool drop_last = false;             // drop the short last local batch (DataLoader's drop_last)
  std::string early_end = "join";     // join | stop | error, where ranks with data of their own run out
};

struct LossScaleConfig {  // of precision fp16; torch.amp.GradScaler's defaults
  std::optional<double> fixed;
  double init = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  double floor = 1e-4;
};

// Ends the run once `metric` has not improved by more than min_delta for `patience` evaluations in a row.
struct EarlyStoppingConfig {
  std::string metric = "val.loss";
  int64_t patience = 3;
  double min_delta = 0;
  std::optional<std::string> mode;  // min | max; empty: whichever is better for the metric
};

struct TrainConfig {
  int64_t epochs = 1;
  std::optional<int64_t> max_steps;
  std::optional<int64_t> batch_size;         // per rank
  std::optional<int64_t> global_batch_size;  // batch_size * world_size * accumulate
  int64_t accumulate = 1;
  std::optional<int64_t> virtual_ranks;  // pieces of a step, whatever the number of ranks
  std::string loss = "cross_entropy";    // cross_entropy | mse | l1 | smooth_l1 | bce_with_logits
  std::string reduction = "mean";        // mean | sum
  double label_smoothing = 0;
  std::vector<double> class_weights;
  int64_t ignore_index = -100;
  double beta = 1;  // smooth_l1
  std::optional<double> clip_norm, clip_value;
  double clip_norm_type = 2;          // inf allowed
  std::optional<double> ema;          // decay of the weights' moving average, which is evaluated in their place
  int64_t replica_check = 0;          // every so many steps compare the parameters over the ranks; 0: never
  std::string on_nonfinite = "stop";  // stop | skip | ignore
  std::string precision = "fp32";     // fp32 | bf16 | fp16
  LossScaleConfig loss_scale;
  std::optional<EarlyStoppingConfig> early_stopping;
  std::string where;  // of batch_size or global_batch_size
};

// A group takes the parameters that match any of `match` (glob on the name, or norm | bias as words); first group wins.
struct ParameterGroupConfig {
  std::vector<std::string> match;
  std::optional<double> lr, weight_decay;
  bool trainable = true;  // false: frozen
};

struct OptimizerConfig {
  std::string kind = "sgd";            // sgd | adam | adamw | adadelta | rmsprop | adagrad | lars | lamb
  std::optional<double> lr;            // default: PyTorch's for the kind
  std::optional<double> weight_decay;  // default: 0, adamw and lamb 0.01
  double momentum = 0, dampening = 0;
  bool nesterov = false, maximize = false, amsgrad = false, centered = false;
  double beta1 = 0.9, beta2 = 0.999;
  std::optional<double> eps;  // default: PyTorch's for the kind
  double rho = 0.9, alpha = 0.99, lr_decay = 0, initial_accumulator_value = 0;
  bool decay_norm_and_bias = true;  // false: no weight decay on norms and biases
  double trust_coefficient = 1e-3;
  bool adapt_norm_and_bias = false;
  std::optional<int64_t> lr_reference_batch;  // global batch that lr is for; empty: lr as it is
  std::string lr_scaling = "linear";          // linear | sqrt
  std::vector<ParameterGroupConfig> groups;
};

// kind: none | step | multi_step | exponential | constant | linear | polynomial | cosine | one_cycle | sequence |
// plateau
struct ScheduleConfig {
  std::string kind = "none";
  std::string per = "step";  // step | epoch
  int64_t step_size = 1;
  std::vector<int64_t> milestones;  // multi_step, sequence
  double gamma = 0.1;
  double factor = 1.0 / 3, start_factor = 1.0 / 3, end_factor = 1;
  std::optional<int64_t> total;  // constant, linear, polynomial (5), one_cycle (the whole run)
  double power = 1;
  std::optional<int64_t> t_max;  // cosine: default the whole run (minus warm-up)
  double eta_min = 0;
  int64_t warmup = 0;              // linear warm-up before any kind: from warmup_start_factor to 1
  double warmup_start_factor = 0;  // 0: (t+1)/warmup
  double max_lr = 0, pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
  std::string anneal = "cos";  // cos | linear
  bool three_phase = false, cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  std::string mode = "min", threshold_mode = "rel", metric = "val.loss";  // plateau
  int64_t patience = 10, cooldown = 0;
  double threshold = 1e-4, min_lr = 0, plateau_eps = 1e-8;
  std::vector<ScheduleConfig> schedules;  // sequence
};

// "N epochs", "N steps" or never.
struct Period {
  enum class Kind { epochs, steps, never };
  Kind kind = Kind::epochs;
  int64_t n = 1;            // 0 for never
  std::string str() const;  // "1 epoch", "200 steps", "never"
  bool operator==(const Period& other) const = default;
};

struct EvalConfig {
  Period every;
  int64_t batch_size = 1000;         // per rank
  bool at_start = false;             // also after the first step ("step 0" of the articles' script)
  std::vector<std::string> metrics;  // metric_names(); empty: accuracy where the targets are classes. Always: the loss
};

// What is saved below run.dir/checkpoints, and when.
struct CheckpointConfig {
  Period every{Period::Kind::never, 0};  // and at the end of the run, unless never
  int64_t keep = 3;                      // the newest so many
  std::optional<int64_t> keep_every;     // and every so many steps one for good
  bool keep_best = true;                 // and the best by a validation
  std::optional<std::string> best;       // watchable_metrics(); empty: early_stopping's, else val.loss
  std::string on_error = "stop";         // stop | warn: when one cannot be written
  bool background = true;                // write while training goes on
};

// Weights to start from, instead of random ones: model.init_from.
struct InitFromConfig {
  std::string file;  // a .safetensors file or a checkpoint; empty: none
  // Name in the file -> ours, empty: left out; a * at the end of both matches any end. The first that matches counts.
  std::vector<std::pair<std::string, std::string>> rename;
  bool strict = true;  // every parameter must be found, every tensor used
  std::string where;
};

struct LogConfig {
  int64_t every = 50;     // steps between lines; the last step of the run is always printed
  bool per_rank = false;  // also every rank's local loss
  bool indices = false;   // also the sample indices of each rank's micro-batches
  bool every_micro_step = false;
  bool noise_scale = false;        // also the gradient noise scale
  bool tensorboard = true;         // also events for TensorBoard, in run.dir
  std::vector<int64_t> trace;      // first and last step of a Chrome trace; empty: none
  std::vector<std::string> watch;  // probes printed by every rank: value:NAME[i,j] gradient:NAME[i,j] checksum:NAME
};

struct DistributedConfig {
  std::optional<int64_t> world_size;           // checked against the launch
  std::string backend = "auto";                // auto | shm | mpi   (serial when there is one rank and auto)
  bool sync = true;                            // false: replicas drift apart, to show why they must not
  std::string average = "samples";             // samples | ranks (PyTorch DDP's mean of the ranks' means)
  bool overlap = true;                         // launch buckets while backward goes on
  std::string batch_norm = "rank0";            // rank0 | average | sync
  double bucket_mb = 25, first_bucket_mb = 1;  // MiB of gradients per all-reduce
  std::string compress = "none";               // none | bf16 | fp16: how gradients travel
  std::string sharded_update = "auto";         // auto | on | off: ranks divide the optimizer step among them
  double timeout = 120;                        // seconds a collective may wait
  double prepare_timeout = 3600;               // the same before the first step
  std::string where;                           // of world_size
};

struct DeviceConfig {
  std::string kind = "auto";         // auto | cpu | cuda
  bool oversubscribe = false;        // ranks may share a GPU
  int64_t threads = 0;               // compute threads per rank; 0: allowed cores / local ranks
  std::string convolution = "auto";  // auto | direct | winograd
  bool flush_denormals = true;
  // Of GPUs; GpuOptions says what they mean.
  bool deterministic = true, tf32 = false;
  std::string convolution_search = "heuristic";  // heuristic | measure
  int64_t convolution_workspace_mb = 256;        // MiB
  std::string cuda_graph = "auto";               // auto | on | off
  std::string data = "auto";                     // auto | on | off: whether it keeps the training set
  std::optional<int64_t> data_mb;                // MiB, at most so many then
};

struct Config {
  std::string path;  // the file, for messages
  RunConfig run;
  ModelSpec model;
  DataConfig data;
  SamplerConfig sampler;
  TrainConfig train;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  EvalConfig eval;
  CheckpointConfig checkpoint;
  InitFromConfig init_from;
  LogConfig log;
  DistributedConfig distributed;
  DeviceConfig device;
};

// Reads, checks and completes a file; `overrides` are the --set key=value pairs, in order. Throws Error with
// file:line:column (or --set KEY) in front of every message.
Config load_config(const std::string& path, const std::vector<std::string>& overrides);
// The same for text already read (`path` is the name in messages and where relative paths start).
Config parse_config(const std::string& text, const std::string& path, const std::vector<std::string>& overrides);
// The text of a config file. Error: no file, or larger than any config.
std::string read_config_file(const std::string& path);
// The resolved file: every key, accepted by load_config, which gives the same structs again.
std::string to_yaml(const Config& config);
// docs/config.md and docs/config.schema.json, made from the schema table.
std::string config_reference();
std::string config_json_schema();
// Dotted names of all keys that hold a value, but for entries of lists: what --set takes.
std::vector<std::string> config_keys();

}  // namespace lockstep

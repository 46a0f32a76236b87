// The sections run, sampler, eval, log, distributed and device, and the table of sections itself.
#include <algorithm>

#include "core/stop_signals.h"
#include "train/config_keys.h"
#include "train/metrics/table.h"

namespace lockstep {
namespace {

// Its keys are not all of one struct: the table is of the whole Config.
Key model_section() {
  Key result = section("model", &Config::model, model_schema, "The network.");
  result.read = [](const YamlNode& node, const std::string& path, void* object) {
    read_map(model_schema(), node, path, object);
  };
  result.child_object = [](const void* object) { return object; };
  return std::move(result).must("model: {preset: mnist_convnet}").also({"network", "architecture"});
}

template <class S>
Schema make(std::string doc, std::vector<Key> keys) {
  Schema schema;
  schema.doc = std::move(doc);
  schema.defaults = std::make_shared<S>();
  schema.keys = std::move(keys);
  return schema;
}

}  // namespace

const Schema& run_schema() {
  using S = RunConfig;
  constexpr double kLongest = 1e9;  // 30 years
  Rule time_above_zero = above(0);
  time_above_zero.high = kLongest;
  static const Schema schema =
      make<S>("The run as a whole.",
              {key("dir", &S::dir, anything(), "Everything the run writes lies below this directory.")
                   .also({"output", "output_dir"}),
               key("seed", &S::seed, anything(), "Seed of initialisation and dropout, as torch.manual_seed.")
                   .also({"random_seed", "manual_seed"}),
               key("seed_per_rank", &S::seed_per_rank, anything(),
                   "Rank r initialises from seed + r; the broadcast from rank 0 then makes the replicas equal."),
               key("stop_signals", &S::stop_signals, one_of(stop_signal_names()),
                   "Signals that, sent to any rank, end the run after its step, saved: exit code 75. []: none."),
               key("max_time", &S::max_time, time_above_zero,
                   "Ends the run, saved, this long after its start: seconds, or as 1h30m. null: never.")
                   .also({"max_duration", "time_limit", "walltime"}),
               key("time_margin", &S::time_margin, between(0, kLongest),
                   "Ends the run, saved, this long before the time limit of its Slurm job."),
               key("requeue", &S::requeue, anything(),
                   "A run that was asked to end, and is saved, puts its Slurm job back into the queue: not after "
                   "SIGTERM, which "
                   "scancel sends, and preemption, where Slurm does it.")});
  return schema;
}

const Schema& sampler_schema() {
  using S = SamplerConfig;
  static const Schema schema = make<S>(
      "The order of the training samples and their split over the ranks.",
      {key("shuffle", &S::shuffle, anything(), "Draws a new order each epoch; false: the order of the file."),
       key("seed", &S::seed, anything(), "Seed of the order, as DistributedSampler's."),
       key("reshuffle", &S::reshuffle, anything(), "false: epoch 0's order in every epoch (a missing set_epoch)."),
       key("generator", &S::generator, one_of({"sampler", "global"}),
           "sampler: order from (seed, epoch); global: from the global generator, as DataLoader(shuffle=True)."),
       key("uneven", &S::uneven, one_of({"exact", "pad", "drop"}),
           "Where the samples don't divide by the ranks: exact: each once; pad: repeat the first ones; drop: leave out "
           "the rest."),
       key("drop_last", &S::drop_last, anything(), "Leaves out a rank's short last batch."),
       key("early_end", &S::early_end, one_of({"join", "stop", "error"}),
           "Where ranks with data of their own run out of it at different steps: join: the others go on, and each step "
           "is divided by the samples it really has; stop: the epoch ends for all with the last step that every rank "
           "has samples for; error: the run is refused, naming the rank. See Uneven data below.")});
  return schema;
}

const Schema& eval_schema() {
  using S = EvalConfig;
  static const Schema schema = [] {
    Rule metrics = one_of(metric_names());
    metrics.most_items = metrics.choices.size();
    Schema made = make<S>(
        "Evaluation on data.val.",
        {key("every", &S::every, anything(), "How often: 'N epochs', 'N steps' or never.")
             .also({"interval", "frequency"}),
         key("batch_size", &S::batch_size, between(1, 1 << 30), "Samples per rank and forward pass."),
         key("at_start", &S::at_start, anything(), "Also after the first step."),
         key("metrics", &S::metrics, metrics,
             "What is computed beside the loss, see metrics.md; empty: the accuracy where the targets are classes.")
             .by_default("[loss, accuracy], [loss] for real values")
             .also({"metric"})});
    made.finish = [](void* object, const MapView& view) {
      auto names = static_cast<S*>(object)->metrics;
      std::ranges::sort(names);
      const auto twice = std::ranges::adjacent_find(names);
      if (twice != names.end()) view.fail("metrics", "lists " + *twice + " twice");
    };
    return made;
  }();
  return schema;
}

const Schema& log_schema() {
  using S = LogConfig;
  static const Schema schema = [] {
    Schema made = make<S>(
        "What is printed.",
        {key("every", &S::every, at_least(1), "Steps between two lines; the last step of the run is always printed."),
         key("per_rank", &S::per_rank, anything(), "Also every rank's local loss."),
         key("indices", &S::indices, anything(), "Also the sample indices of every rank's micro-batches."),
         key("every_micro_step", &S::every_micro_step, anything(), "A line per micro-step instead of per step."),
         key("noise_scale", &S::noise_scale, anything(),
             "Also the gradient noise scale (McCandlish et al. 2018), from the ranks' gradients before and after the "
             "reduction: about the largest batch that still pays."),
         key("tensorboard", &S::tensorboard, anything(),
             "Also writes losses, rates and validations as TensorBoard's events into run.dir."),
         key("trace", &S::trace, at_least(0).items(0, 2),
             "First and last step of a Chrome trace, run.dir/trace.json: what each rank does when, see settings.md. "
             "[]: none.")
             .also({"profile", "profiler", "chrome_trace"}),
         key("watch", &S::watch, anything(),
             "Numbers printed by every rank: value:NAME[i,j], gradient:NAME[i,j], checksum:NAME (in double quotes).")});
    made.finish = [](void* object, const MapView& view) {
      const auto& trace = static_cast<S*>(object)->trace;
      if (trace.size() == 1 || (trace.size() == 2 && trace[0] > trace[1]))
        view.fail("trace", "must be the first and the last step, [FIRST, LAST], or []");
    };
    return made;
  }();
  return schema;
}

const Schema& distributed_schema() {
  using S = DistributedConfig;
  static const Schema schema = [] {
    Schema made = make<S>(
        "The ranks.",
        {key("world_size", &S::world_size, between(1, 1 << 24),
             "Number of ranks; checked against the launch where given.")
             .also({"num_ranks", "ranks", "nproc"}),
         key("backend", &S::backend, one_of({"auto", "serial", "shm", "mpi", "hierarchical", "nccl"}),
             "Communicator: shm: shared memory within a node; mpi: messages between all ranks; hierarchical: shared "
             "memory within nodes and messages between them; auto: shm where all ranks share a node, else the faster "
             "of the other two, measured at the start. Same bits. nccl: between GPUs, with device.kind: cuda."),
         key("sync", &S::sync, anything(),
             "false: gradients are not reduced and the replicas drift apart, to show why."),
         key("batch_norm", &S::batch_norm, one_of({"rank0", "average", "sync"}),
             "Batch statistics: rank0: of the own samples, rank 0's running ones evaluate; average: the mean of the "
             "ranks' running ones does, weighted by samples; sync: of all ranks' samples (overlap is off then).")
             .also({"sync_batch_norm", "sync_bn"}),
         key("average", &S::average, one_of({"samples", "ranks"}),
             "samples: the gradient is the sum over all samples, divided once; ranks: the mean of the ranks' own "
             "means, as PyTorch's DDP (they differ where ranks or micro-steps have unequal numbers of samples)."),
         key("overlap", &S::overlap, anything(),
             "true: a bucket's all-reduce starts while backward goes on; false: all of them after it. Same bits."),
         key("bucket_mb", &S::bucket_mb, between(0, 1 << 20),
             "MiB of gradients per all-reduce; a parameter is never split. 0: a bucket per parameter. Where "
             "sharded_update is done there are none.")
             .also({"bucket_cap_mb", "bucket_size"}),
         key("first_bucket_mb", &S::first_bucket_mb, between(0, 1 << 20),
             "The same for the bucket that is complete first, which should start early."),
         key("compress", &S::compress, one_of({"none", "bf16", "fp16"}),
             "Rounds gradients to 16 bits where they travel, half the bytes: added in float, the sum rounded once, "
             "same "
             "bits on all ranks. fp16 has more digits, but overflows at 65520 (train.on_nonfinite sees it).")
             .also({"compression", "gradient_compression", "comm_hook", "communication_data_type"}),
         key("sharded_update", &S::sharded_update, one_of({"auto", "on", "off"}),
             "Each rank of a node sums and updates its share of the parameters and hands it to the others, in place of "
             "whole sums, buckets and updates on every rank: the same bits in less time, not less memory. auto: from "
             "1.5 MiB of gradients, where nothing needs the whole sum (data_parallel.md); on: an error where something "
             "does.")
             .also({"shard_optimizer", "zero", "zero_stage", "zero_redundancy_optimizer"}),
         key("timeout", &S::timeout, above(0),
             "Seconds that a collective may wait before the run ends, naming rank, step, collective and bucket."),
         key("prepare_timeout", &S::prepare_timeout, above(0),
             "The same before the first step, where one rank may be busy with data for long.")});
    made.finish = [](void* object, const MapView& view) {
      auto& distributed = *static_cast<S*>(object);
      if (view.has("world_size")) distributed.where = view.at("world_size").str();
      if (!distributed.sync && distributed.batch_norm != "rank0")
        view.fail("batch_norm", "needs distributed.sync: true");
    };
    return made;
  }();
  return schema;
}

const Schema& device_schema() {
  using S = DeviceConfig;
  static const Schema schema = [] {
    Schema made = make<S>(
        "The device of each rank.",
        {key("kind", &S::kind, one_of({"auto", "cpu", "cuda"}),
             "auto: GPUs where every rank has one of its own, else the CPU; cuda: each rank takes a GPU of its node."),
         key("oversubscribe", &S::oversubscribe, anything(),
             "true: more ranks than GPUs may share them; else that is an error."),
         key("threads", &S::threads, between(0, 4096),
             "Compute threads per rank; 0: allowed cores / local ranks, 1 with virtual ranks."),
         key("convolution", &S::convolution, one_of({"auto", "direct", "winograd"}),
             "Algorithm of 3x3 convolutions on a CPU."),
         key("flush_denormals", &S::flush_denormals, anything(), "Treats denormal numbers as 0, which is faster."),
         key("deterministic", &S::deterministic, anything(),
             "On a GPU: the same bits on every run; false: also cuDNN's algorithms that add in another order each "
             "time.")
             .also({"cudnn_deterministic", "use_deterministic_algorithms"}),
         key("tf32", &S::tf32, anything(),
             "On a GPU: fp32 convolutions and linear layers may round what they multiply to 11 bits (TF32): many times "
             "faster, about bf16's digits and a half more.")
             .also({"allow_tf32"}),
         key("convolution_search", &S::convolution_search, one_of({"heuristic", "measure"}),
             "On a GPU: which of cuDNN's algorithms each pass of a convolution takes, once, at the start: heuristic: "
             "the "
             "one that the library expects to be fastest; measure: the fastest of all, which are timed. Ranks may then "
             "differ in the last bits of what they compute, and so may two runs.")
             .also({"cudnn_benchmark", "benchmark"}),
         key("convolution_workspace_mb", &S::convolution_workspace_mb, between(0, 1 << 20),
             "On a GPU: MiB of scratch that a pass of a convolution may want; algorithms that want more are left out.")
             .also({"cudnn_workspace_mb", "workspace_mb"}),
         key("cuda_graph", &S::cuda_graph, one_of({"auto", "on", "off"}),
             "On a GPU: steps are recorded as CUDA graphs and started as a whole, with the same bits, which spares "
             "small "
             "models the time of starting their kernels. auto: where nothing in a step waits for the host; the run's "
             "log says so, or what does. on: an error where it can't be.")
             .also({"cuda_graphs"}),
         key("data", &S::data, one_of({"auto", "on", "off"}),
             "On a GPU: on: it keeps the training set, as stored, and puts batches together and augments them itself; "
             "auto: where that takes at most a quarter of its free memory; off: every batch is copied. Same bits.")
             .also({"keep_data", "cache_data", "data_on_gpu"}),
         key("data_mb", &S::data_mb, between(1, 1 << 24), "On a GPU: MiB that a training set kept there may take.")});
    made.scalar_key = "kind";
    return made;
  }();
  return schema;
}

const Schema& root_schema() {
  using S = Config;
  static const Schema schema =
      make<S>("One map of sections.",
              {section("run", &S::run, run_schema, "The run as a whole."), model_section(),
               section("data", &S::data, data_schema, "The data sets.")
                   .must("data: {train: {kind: csv, file: points.csv}}")
                   .also({"dataset", "datasets"}),
               section("sampler", &S::sampler, sampler_schema, "Order and split of the samples."),
               section("train", &S::train, train_schema, "The training loop.").also({"training", "trainer"}),
               section("optimizer", &S::optimizer, optimizer_schema, "The optimizer.").also({"optim"}),
               section("schedule", &S::schedule, schedule_schema, "The learning rate over time.")
                   .also({"scheduler", "lr_scheduler", "lr_schedule"}),
               section("eval", &S::eval, eval_schema, "Evaluation.").also({"evaluation"}),
               section("checkpoint", &S::checkpoint, checkpoint_schema, "What is saved, and when.")
                   .also({"checkpoints", "checkpointing", "save"}),
               section("log", &S::log, log_schema, "Output.").also({"logging"}),
               section("distributed", &S::distributed, distributed_schema, "The ranks.").also({"parallel", "ddp"}),
               section("device", &S::device, device_schema, "The device.")});
  return schema;
}

}  // namespace lockstep

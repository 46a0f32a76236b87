#include "train/saved/saved_predict.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "comm/run_agreed.h"
#include "core/error.h"
#include "data/factory.h"
#include "data/images.h"
#include "train/resume.h"
#include "train/saved/input_files.h"
#include "train/translate.h"

namespace lockstep {
namespace {

// The run's own validation or training data, for their normalisation and columns.
const DatasetConfig& like_data(const Config& config) { return config.data.val ? *config.data.val : config.data.train; }

DatasetConfig input_config(const SavedRun& run, const std::string& input) {
  DatasetConfig set = like_data(run.config);
  if (input.empty()) {
    if (!run.config.data.val) throw_error("{}: the run had no validation data: name a file with --data", run.path);
    return set;
  }
  const std::string path = std::filesystem::absolute(input).string();
  set.kind = kind_of_file(input);
  set.where = "--data";
  set.first = 0, set.count = -1, set.augment = 1;
  set.seed_per_rank = false;
  set.make = nullptr;
  set.images = set.file = set.x = path;
  set.labels.clear(), set.y.clear();
  return set;
}

void check_shape(const SavedRun& run, const Shape& found, const Shape& sample) {
  if (found != sample) throw_error("{}: the model's samples are {}, found {}", run.path, sample.str(), found.str());
}

std::unique_ptr<Dataset> read_samples(const SavedRun& run, const std::string& input, const Shape& sample) {
  DatasetSettings settings = dataset_settings(run.config, input_config(run, input), 0);
  settings.targets = WantedTargets::none;
  if (settings.kind == "csv") settings.shape.assign(sample.dims().begin(), sample.dims().end());
  const bool generated = settings.kind == "synthetic" || settings.kind == "toy";
  if (generated) settings.targets = WantedTargets::automatic;  // made with the samples
  std::unique_ptr<Dataset> data = make_dataset(settings, 0);
  check_shape(run, data->sample_shape(), sample);
  return data;
}

// Rank 0's list: the folder may look different elsewhere.
std::vector<std::string> agreed_names(const std::string& folder, Communicator& communicator) {
  std::string joined;
  run_agreed(communicator, [&] {
    if (communicator.rank() != 0) return;
    for (const std::string& name : image_names(folder)) joined += name + '\0';
  });
  joined = broadcast_text(joined, communicator);
  std::vector<std::string> names;
  for (size_t begin = 0; begin < joined.size(); begin += names.back().size() + 1)
    names.emplace_back(joined.c_str() + begin);
  return names;
}

struct Batches {
  const Dataset& data;
  Network& network;
  int64_t size;
  std::vector<float> x, targets;
  std::vector<int64_t> labels, rows;

  Batches(const Dataset& dataset, Network& model, int64_t batch)
      : data(dataset),
        network(model),
        size(std::min(batch, dataset.size())),
        x(static_cast<size_t>(size * dataset.sample_shape().numel())),
        targets(static_cast<size_t>(size * dataset.target_width())),
        labels(static_cast<size_t>(size)) {}

  int64_t count() const { return (data.size() + size - 1) / size; }

  // The outputs of a batch; none behind the last.
  std::span<const float> outputs(int64_t batch) {
    rows.clear();
    for (int64_t row = batch * size; row < std::min((batch + 1) * size, data.size()); ++row) rows.push_back(row);
    if (rows.empty()) return {};
    data.read(rows, {.x = x.data(), .labels = labels.data(), .targets = targets.data()});
    Graph& graph = network.graph(Phase::inference, static_cast<int64_t>(rows.size()));
    graph.forward(x.data(), {});
    return graph.output().span();
  }
};

std::span<const float> floats(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

PredictionInput prediction_input(const SavedRun& run, const std::string& input, Communicator& communicator) {
  PredictionInput result;
  Shape sample;
  bool folder = false;
  run_agreed(communicator, [&] {
    sample = sample_shape(run);
    folder = !input.empty() && std::filesystem::is_directory(input);
  });
  if (folder) result.names = agreed_names(input, communicator);
  run_agreed(communicator, [&] {
    if (!folder) {
      result.data = read_samples(run, input, sample);
      return;
    }
    const Normalization normalization(dataset_settings(run.config, like_data(run.config), 0));
    result.data = std::make_unique<ImageFolder>(input, result.names, sample, normalization);
  });
  return result;
}

int64_t predict(const SavedRun& run, const PredictionInput& input, Network& network, bool scores,
                const std::string& path, Communicator& communicator) {
  const int rank = communicator.rank(), size = communicator.size();
  std::optional<PredictionFile> file;
  run_agreed(communicator, [&] {
    if (rank != 0) return;
    file.emplace(path, PredictionFormat{.loss = loss_spec(run.config.train).kind,
                                        .samples = input.data->size(),
                                        .outputs = network.output_shape().numel(),
                                        .scores = scores,
                                        .names = input.names});
  });
  Batches batches(*input.data, network, run.config.eval.batch_size);
  for (int64_t first = 0; first < batches.count(); first += size) {
    std::span<const float> mine;
    run_agreed(communicator, [&] { mine = batches.outputs(first + rank); });
    const std::vector<std::vector<std::byte>> all = communicator.all_gather(std::as_bytes(mine));
    run_agreed(communicator, [&] {
      for (size_t other = 0; file && other < all.size(); ++other) file->add(floats(all[other]));
    });
  }
  run_agreed(communicator, [&] {
    if (file) file->finish();
  });
  return input.data->size();
}

}  // namespace lockstep

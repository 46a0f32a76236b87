#include "train/saved/saved_eval.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "comm/run_agreed.h"
#include "core/error.h"
#include "train/own_data.h"
#include "train/saved/input_files.h"
#include "train/translate.h"

namespace lockstep {
namespace {

// The widest table that is told in full.
constexpr int64_t kWidestTable = 40;

// The run's (virtual) ranks in equal runs, whatever their number.
VirtualRanks deal(int64_t count, int rank, int size) {
  const int64_t first = rank * count / size;
  return {.count = count, .first = first, .held = (rank + 1) * count / size - first};
}

std::vector<std::string> wanted_metrics(const Config& config, const Dataset& data, int64_t outputs) {
  constexpr int64_t kMostClasses = 2048;  // of the metric
  std::vector<std::string> names = config.eval.metrics;
  if (data.target_kind() != TargetKind::labels) return names;
  if (names.empty()) names = {"accuracy"};
  if (outputs <= kMostClasses && std::ranges::count(names, "confusion") == 0) names.emplace_back("confusion");
  return names;
}

std::string number_text(const MetricValue& value) {
  return value.counts ? fmt::format("{:.0f}", value.numbers.front()) : fmt::format("{}", value.numbers.front());
}

std::string compared(const std::string& name, double found, const std::vector<LoggedValue>& logged) {
  const auto same = std::ranges::find(logged, name, &LoggedValue::name);
  if (same == logged.end()) return "";
  if (std::bit_cast<uint64_t>(same->value) == std::bit_cast<uint64_t>(found)) return "  as logged, to the bit";
  return fmt::format("  logged: {} (differs by {:.3g})", same->value, found - same->value);
}

void append_table(const MetricValue& table, std::string& text) {
  const int64_t columns = table.columns;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{} (rows: targets, columns: predictions)\n", table.name);
  if (columns > kWidestTable) {
    fmt::format_to(out, "  {} x {}: too wide to print; eval.metrics: [confusion] writes it to metrics.jsonl\n", columns,
                   columns);
    return;
  }
  size_t width = 0;
  for (const double count : table.numbers) width = std::max(width, fmt::format("{:.0f}", count).size());
  width = std::max(width, fmt::format("{}", columns).size()) + 2;
  fmt::format_to(out, "{:>7}", "");
  for (int64_t c = 0; c < columns; ++c) fmt::format_to(out, "{:>{}}", c, width);
  for (size_t i = 0; i < table.numbers.size(); ++i) {
    if (i % static_cast<size_t>(columns) == 0) fmt::format_to(out, "\n{:>7}", i / static_cast<size_t>(columns));
    fmt::format_to(out, "{:>{}.0f}", table.numbers[i], width);
  }
  text += "\n";
}

}  // namespace

std::unique_ptr<Dataset> evaluation_data(const SavedRun& run, const std::vector<std::string>& files,
                                         Communicator& communicator) {
  const Config& config = run.config;
  std::unique_ptr<Dataset> data;
  run_agreed(communicator, [&] {
    if (files.empty() && !config.data.val)
      throw_error("{}: the run had no validation data: name files with --data", run.path);
    const DatasetConfig set = files.empty() ? *config.data.val : with_files(config, files);
    Generator script(initial_seed(config, communicator.rank()));
    // An augmented set goes on drawing where the training set has stopped.
    if (set.augment > 1) make_dataset(config, config.data.train, communicator.rank(), script);
    data = make_dataset(config, set, communicator.rank(), script);
    const int64_t ranks = run.state.integer("world_size");
    if (data->per_rank() && ranks != communicator.size())
      throw_error("data.val: each of the run's {} ranks had data of its own: start as many ranks, found {}", ranks,
                  communicator.size());
  });
  return data;
}

Metrics evaluate(const SavedRun& run, const Dataset& data, Network& network, Backend& backend,
                 Communicator& communicator) {
  const VirtualRanks ranks = deal(run.state.integer("world_size"), communicator.rank(), communicator.size());
  own_sizes("data.val", data, communicator);
  std::unique_ptr<Evaluator> evaluator;
  run_agreed(communicator, [&] {
    check_output_fits(network.output_shape(), data, run.config.train.loss);
    evaluator = std::make_unique<Evaluator>(data, network, backend, communicator, ranks, loss_spec(run.config.train),
                                            run.config.eval.batch_size,
                                            wanted_metrics(run.config, data, network.output_shape().numel()));
  });
  return *evaluator->run();
}

std::vector<LoggedValue> logged_values(const SavedRun& run) {
  const State validation = run.state.part("validation");
  std::vector<LoggedValue> logged;
  if (!validation.contains("step") || validation.integer("step") + 1 != run.step) return logged;
  for (const auto& [name, value] : validation.values()) {
    if (const auto* number = std::get_if<double>(&value)) logged.push_back({name, *number});
  }
  return logged;
}

std::string evaluation_text(const Metrics& metrics, const std::vector<LoggedValue>& logged) {
  size_t width = 7;
  for (const MetricValue& value : metrics.values) width = std::max(width, value.name.size());
  std::string text = fmt::format("{:<{}}  {}\n", "samples", width, metrics.count);
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<{}}  {}{}\n", "loss", width, metrics.loss, compared("loss", metrics.loss, logged));
  for (const MetricValue& value : metrics.values) {
    if (value.form == MetricValue::Form::number) {
      fmt::format_to(out, "{:<{}}  {}{}\n", value.name, width, number_text(value),
                     compared(value.name, value.numbers.front(), logged));
    } else if (value.form == MetricValue::Form::list) {
      fmt::format_to(out, "{:<{}}  {}\n", value.name, width, fmt::join(value.numbers, " "));
    }
  }
  for (const MetricValue& value : metrics.values) {
    if (value.form == MetricValue::Form::table) append_table(value, text);
  }
  return text;
}

}  // namespace lockstep

#include "train/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "core/text_file.h"

namespace lockstep {
namespace {

// JSON knows no NaN or infinity: they become null, and a reader sees that something went wrong at this step.
nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

// A number, a list, or a table as a list of rows.
nlohmann::json json_of(const MetricValue& value) {
  const auto item = [&](double x) { return value.counts ? nlohmann::json(static_cast<int64_t>(x)) : number(x); };
  if (value.form == MetricValue::Form::number) return item(value.numbers.front());
  nlohmann::json items = nlohmann::json::array();
  for (const double x : value.numbers) items.push_back(item(x));
  if (value.form == MetricValue::Form::list) return items;
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < items.size(); ++i) {
    if (i % static_cast<size_t>(value.columns) == 0) rows.push_back(nlohmann::json::array());
    rows.back().push_back(std::move(items[i]));
  }
  return rows;
}

// What the console shows beside the loss: the accuracy, else the first single number; all is in the file.
std::string headline(const Metrics& metrics) {
  if (const auto accuracy = metrics.number("accuracy"))
    return fmt::format("  accuracy {:.2f} % ({}/{})", 100 * *accuracy, metrics.number("correct").value_or(0),
                       metrics.count);
  for (const MetricValue& value : metrics.values) {
    if (value.form == MetricValue::Form::number) return fmt::format("  {} {:.4f}", value.name, value.numbers.front());
  }
  return "";
}

bool is_counted(const std::string& event) { return event == "step" || event == "eval" || event == "probe"; }

// How long the file is up to its `events`-th counted line, all of it where it has fewer. A line that is not whole JSON
// (a full disk) ends what is kept.
uint64_t bytes_of_events(const std::string& path, int64_t events) {
  std::ifstream file(path, std::ios::binary);
  uint64_t bytes = 0;
  for (std::string line; events > 0 && std::getline(file, line) && !file.eof();) {
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object() || !event.contains("event") || !event["event"].is_string()) break;
    bytes += line.size() + 1;
    if (is_counted(event["event"].get<std::string>())) --events;
  }
  if (events > 0)
    log::warning("{}: {} of the events before the checkpoint are missing; the log goes on without them", path, events);
  return bytes;
}

}  // namespace

RunLog::RunLog(const std::string& dir, bool active) : dir_(dir), active_(active) {
  if (!active_) return;
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error)
    throw_error("run.dir {}: cannot be made: {}; set run.dir to a folder that you may write to", dir, error.message());
}

// Of a resumed run the lines up to its checkpoint stay.
void RunLog::open(const std::optional<ResumedLog>& resumed) {
  const std::string path = dir_ + "/metrics.jsonl";
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (resumed ? 0 : O_TRUNC), 0644);
  if (file_ < 0) throw_error("{}: cannot be written: {}", path, std::strerror(errno));
  if (!resumed) return;
  if (::ftruncate(file_, static_cast<off_t>(bytes_of_events(path, resumed->events))) != 0)
    throw_error("{}: cannot be cut: {}", path, std::strerror(errno));
  events_ = resumed->events;
}

RunLog::~RunLog() {
  if (file_ >= 0) ::close(file_);
}

// One write per line: a line is there whole or not at all, even after a kill.
void RunLog::write(const nlohmann::json& event) {
  const std::string line = event.dump() + "\n";
  if (is_counted(event.at("event").get<std::string>())) ++events_;
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw_error("metrics.jsonl: write failed: {}", std::strerror(errno));
}

void RunLog::start(const StartRecord& r) {
  if (!active_) return;
  open(r.resumed);
  log::copy_to(dir_ + "/stdout", !r.resumed);
  if (r.tensorboard) tensorboard_ = std::make_unique<EventFile>(dir_, r.resumed ? r.resumed->step : -1);
  progress_.start(r.resumed ? r.resumed->step : 0, r.total_steps);
  write_text_file(dir_ + "/config.yaml", r.config_yaml);
  nlohmann::json event = {{"event", r.resumed ? "resume" : "start"},
                          {"world_size", r.world_size},
                          {"parameters", r.parameters},
                          {"samples", r.samples},
                          {"steps_per_epoch", r.steps_per_epoch},
                          {"total_steps", r.total_steps},
                          {"arithmetic", r.arithmetic},
                          {"environment", nlohmann::json::object()},
                          {"config", r.config_yaml}};
  for (const auto& [name, value] : r.environment) event["environment"][name] = value;
  if (r.resumed) {
    event["step"] = r.resumed->step;
    event["checkpoint"] = r.resumed->checkpoint;
  }
  write(event);
  log::info("{} parameters, world_size {}, {}", r.parameters, r.world_size, r.arithmetic);
}

// An event of its own, before the step's: it does not count (is_counted), as times differ from run to run.
void RunLog::time(const StepRecord& r) {
  if (r.time.steps == 0) return;
  nlohmann::json event = {{"event", "time"}, {"step", r.step}, {"steps", r.time.steps}};
  for (size_t phase = 0; phase < kStepPhases.size(); ++phase)
    for (const auto& rank : r.time.ranks) event[std::string(kStepPhases[phase])].push_back(rank[phase]);
  write(event);
}

void RunLog::step(const StepRecord& r) {
  if (!active_) return;
  time(r);
  nlohmann::json event = {{"event", "step"},
                          {"step", r.step},
                          {"epoch", r.epoch},
                          {"loss", number(r.loss)},
                          {"lr", r.lr},
                          {"samples", r.samples},
                          {"samples_seen", r.samples_seen},
                          {"samples_per_second", number(r.samples_per_second)}};
  if (r.gradient_norm >= 0 || std::isnan(r.gradient_norm)) event["gradient_norm"] = number(r.gradient_norm);
  if (r.loss_scale > 0) {
    event["loss_scale"] = r.loss_scale;
    event["skipped"] = r.skipped;
  }
  if (r.noise) {
    event["noise_scale"] = number(r.noise->noise_scale);
    event["noise_trace"] = number(r.noise->trace);
    event["noise_gradient_square"] = number(r.noise->gradient_square);
  }
  for (const RankStep& rank : r.ranks) {
    event["rank_loss"].push_back(number(rank.loss));
    if (!rank.indices.empty()) event["rank_indices"].push_back(rank.indices);
  }
  write(event);
  progress_.loss(r.loss);
  if (tensorboard_) add_scalars(r);
  log::detail("epoch {:3d}  step {:6d} ({}/{})  loss {:.4f}  lr {:.3g}  {:.0f} samples/s{}", r.epoch + 1, r.step,
              r.step_in_epoch + 1, r.steps_per_epoch, r.loss, r.lr, r.samples_per_second,
              r.noise ? fmt::format("  noise scale {:.1f}", r.noise->noise_scale) : "");
  for (size_t rank = 0; rank < r.ranks.size(); ++rank) {
    std::string indices;
    for (const auto& micro_step : r.ranks[rank].indices) indices += fmt::format(" [{}]", fmt::join(micro_step, ", "));
    log::info("  rank {}  loss {:.4f}{}{}", rank, r.ranks[rank].loss, indices.empty() ? "" : "  indices", indices);
  }
}

void RunLog::add_scalars(const StepRecord& r) {
  EventFile::Scalars scalars{{"train/loss", r.loss},
                             {"train/learning_rate", r.lr},
                             {"train/samples_per_second", r.samples_per_second},
                             {"train/epoch", static_cast<double>(r.epoch)}};
  if (r.gradient_norm >= 0) scalars.emplace_back("train/gradient_norm", r.gradient_norm);
  if (r.loss_scale > 0) scalars.emplace_back("train/loss_scale", r.loss_scale);
  if (r.noise) scalars.emplace_back("train/noise_scale", r.noise->noise_scale);
  tensorboard_->add(r.step, scalars);
}

void RunLog::add_scalars(const EvalRecord& r) {
  std::vector<std::string> tags;
  tags.reserve(r.metrics.values.size());  // the scalars point at them
  EventFile::Scalars scalars{{"val/loss", r.metrics.loss}};
  for (const MetricValue& value : r.metrics.values) {
    if (value.form == MetricValue::Form::number)
      scalars.emplace_back(tags.emplace_back("val/" + value.name), value.numbers.front());
  }
  tensorboard_->add(r.step, scalars);
}

void RunLog::eval(const EvalRecord& r) {
  if (!active_) return;
  const Metrics& m = r.metrics;
  nlohmann::json event = {{"event", "eval"},        {"step", r.step},   {"epoch", r.epoch},
                          {"loss", number(m.loss)}, {"count", m.count}, {"shards", m.shard_sizes},
                          {"seconds", r.seconds},   {"best", r.best}};
  for (const MetricValue& value : m.values) event[value.name] = json_of(value);
  write(event);
  if (tensorboard_) add_scalars(r);
  log::info("epoch {:3d}  step {:6d}  validation  loss {:.4f}{}  {} samples as {}", r.epoch + 1, r.step, m.loss,
            headline(m), m.count, fmt::join(m.shard_sizes, " + "));
}

void RunLog::probe(const std::string& when, int64_t step, const std::string& text,
                   const std::vector<double>& per_rank) {
  if (!active_) return;
  nlohmann::json values = nlohmann::json::array();
  for (double value : per_rank) values.push_back(number(value));
  write({{"event", "probe"}, {"when", when}, {"step", step}, {"probe", text}, {"values", values}});
  for (size_t rank = 0; rank < per_rank.size(); ++rank)
    log::info("  rank {}  {} {} = {:+.6f}", rank, when, text, per_rank[rank]);
}

void RunLog::finish(const EndRecord& r) {
  if (!active_) return;
  progress_.finish();
  nlohmann::json event = {
      {"event", "end"}, {"steps", r.steps}, {"seconds", r.seconds}, {"model_sha256", r.model_sha256}};
  if (r.best) {
    event["stopped_early"] = r.stopped_early;
    event["best"] = {{"metric", r.best->metric}, {"value", number(r.best->value)}, {"step", r.best->step}};
  }
  write(event);
}

void RunLog::stopped(int64_t steps, const std::string& reason, bool saved) {
  if (!active_) return;
  progress_.finish();
  write({{"event", "stopped"}, {"steps", steps}, {"reason", reason}, {"saved", saved}});
}

}  // namespace lockstep

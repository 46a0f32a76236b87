#include "train/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/progress.h"

namespace lockstep {
namespace {

using nlohmann::json;

double number(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

int64_t integer(const json& event, const char* key) { return static_cast<int64_t>(number(event, key)); }

std::string best_text(const json& best) {
  return fmt::format("{} {:.4f} at step {}", best.value("metric", ""), number(best, "value"), integer(best, "step"));
}

}  // namespace

void RunFollower::update() {
  const std::string path = dir_ + "/metrics.jsonl";
  std::error_code missing;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, missing));
  if (missing) return;
  if (size < offset_) {
    offset_ = 0;
    rest_.clear();
    status_ = {};
  }
  std::ifstream file(path, std::ios::binary);
  file.seekg(offset_);
  for (std::string line; std::getline(file, line);) {
    offset_ += static_cast<int64_t>(line.size()) + (file.eof() ? 0 : 1);
    rest_ += line;
    if (file.eof()) return;  // half a line: the rest comes later
    take(rest_);
    rest_.clear();
  }
}

void RunFollower::take(const std::string& line) {
  const json event = json::parse(line, nullptr, false);
  if (!event.is_object() || !event.contains("event") || !event["event"].is_string())
    throw_error("{}/metrics.jsonl: expected an event per line, found: {}", dir_, line.substr(0, 80));
  const auto kind = event["event"].get<std::string>();
  if (kind == "start" || kind == "resume") {
    status_.state = "running";
    status_.world_size = static_cast<int>(integer(event, "world_size"));
    status_.total_steps = integer(event, "total_steps");
    if (kind == "resume") status_.step = integer(event, "step");
  } else if (kind == "step") {
    status_.step = integer(event, "step") + 1;
    status_.epoch = integer(event, "epoch");
    status_.loss = number(event, "loss");
    status_.lr = number(event, "lr");
    status_.samples_per_second = number(event, "samples_per_second");
    if (const double samples = number(event, "samples"); samples > 0)
      status_.steps_per_second = status_.samples_per_second / samples;
  } else if (kind == "eval") {
    status_.validation_loss = number(event, "loss");
    if (event.contains("accuracy")) status_.accuracy = number(event, "accuracy");
    if (event.value("best", false))
      status_.best = fmt::format("val.loss {:.4f} at step {}", *status_.validation_loss, integer(event, "step"));
  } else if (kind == "end") {
    status_.state = "ended";
    status_.step = integer(event, "steps");
    if (event.contains("best") && event["best"].is_object()) status_.best = best_text(event["best"]);
  } else if (kind == "stopped") {
    status_.state = "stopped";
    status_.step = integer(event, "steps");
  }
}

std::string status_table(const std::vector<RunFollower>& runs) {
  size_t widest = 4;
  for (const RunFollower& run : runs) widest = std::max(widest, run.dir().size());
  std::string text = fmt::format("{:<{}}  {:<8} {:>5} {:>17} {:>10} {:>10} {:>11} {:>16} {:>8}  {}\n", "run", widest,
                                 "state", "epoch", "step", "loss", "lr", "samples/s", "validation", "left", "best");
  for (const RunFollower& run : runs) {
    const RunStatus& s = run.status();
    const int64_t left = s.total_steps - s.step;
    std::string steps = fmt::format("{}", s.step), validation;
    if (s.total_steps > 0) steps += fmt::format("/{} {:3} %", s.total_steps, s.step * 100 / s.total_steps);
    if (s.validation_loss) validation = fmt::format("{:.4f}", *s.validation_loss);
    if (s.accuracy) validation += fmt::format(" {:.2f} %", *s.accuracy * 100);
    const bool known = s.state == "running" && s.steps_per_second > 0 && s.total_steps > 0;
    text += fmt::format("{:<{}}  {:<8} {:>5} {:>17} {:>10.4f} {:>10.3g} {:>11.0f} {:>16} {:>8}  {}\n", run.dir(),
                        widest, s.state, s.epoch + 1, steps, s.loss, s.lr, s.samples_per_second, validation,
                        known ? clock_text(static_cast<double>(left) / s.steps_per_second) : "", s.best.value_or(""));
  }
  return text;
}

}  // namespace lockstep

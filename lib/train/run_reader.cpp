#include "train/run_reader.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr size_t kMaxLine = 64 << 20;

double number(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

RunCurves read_run(const std::string& dir) {
  const std::string path = dir + "/metrics.jsonl";
  std::ifstream stream(path);
  if (!stream) throw_error("{}: cannot be read: is {} a run directory?", path, dir);
  RunCurves run;
  run.label = std::filesystem::path(dir).lexically_normal().filename().string();
  if (run.label.empty()) run.label = std::filesystem::path(dir).lexically_normal().parent_path().filename().string();
  std::string line;
  for (int64_t number_of_line = 1; std::getline(stream, line); ++number_of_line) {
    if (line.size() > kMaxLine) throw_error("{}:{}: a line of {} bytes", path, number_of_line, line.size());
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_discarded() && stream.eof()) break;
    if (!event.is_object() || !event.contains("event") || !event["event"].is_string())
      throw_error("{}:{}: not an event of a run", path, number_of_line);
    const std::string kind = event["event"];
    if (kind == "start" && event.contains("arithmetic") && event["arithmetic"].is_string())
      run.arithmetic = event["arithmetic"];
    if (kind == "step") {
      run.train_loss.points.emplace_back(number(event, "step"), number(event, "loss"));
      run.learning_rate.points.emplace_back(number(event, "step"), number(event, "lr"));
    }
    if (kind == "eval") {
      run.validation_loss.points.emplace_back(number(event, "step"), number(event, "loss"));
      run.validation_accuracy.points.emplace_back(number(event, "step"), number(event, "accuracy"));
    }
  }
  return run;
}

}  // namespace lockstep

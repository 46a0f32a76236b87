#include "report/html_report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/build_info.h"
#include "report/page.h"

namespace lockstep {
namespace {

using nlohmann::json;
constexpr size_t kMostLines = 20'000;  // of a run in the page; of longer logs every second, third, ... line is shown

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

size_t stride(size_t lines) { return (lines + kMostLines - 1) / kMostLines; }

json steps_of(const RunData& run) {
  json lines = json::array();
  const size_t by = std::max<size_t>(stride(run.steps.size()), 1);
  for (size_t i = 0; i < run.steps.size(); i += by) {
    const StepLine& line = run.steps[i];
    lines.push_back({{"step", line.step},
                     {"seen", line.samples_seen ? json(*line.samples_seen) : json(nullptr)},
                     {"loss", number(line.loss)},
                     {"lr", number(line.lr)},
                     {"gradient_norm", number(line.gradient_norm)},
                     {"samples_per_second", number(line.samples_per_second)}});
  }
  return lines;
}

json evals_of(const RunData& run) {
  json lines = json::array();
  for (const EvalLine& line : run.evals) {
    json values = json::object();
    for (const auto& [name, value] : line.values) values[name] = number(value);
    lines.push_back({{"step", line.step}, {"values", std::move(values)}});
  }
  return lines;
}

json page_of(const RunData& run) {
  return {{"label", run.label},
          {"world_size", run.world_size},
          {"parameters", run.parameters},
          {"samples", run.samples},
          {"steps_per_epoch", run.steps_per_epoch},
          {"arithmetic", run.arithmetic},
          {"state", state_of(run)},
          {"seconds", run.ended ? number(run.seconds) : json(nullptr)},
          {"throughput", number(throughput(run))},
          {"config", run.config},
          {"settings", run.settings},
          {"environment", run.environment},
          {"steps", steps_of(run)},
          {"evals", evals_of(run)},
          {"times", mean_times(run)}};
}

std::string setting(const RunData& run, const std::string& key, const std::string& otherwise) {
  for (const auto& [name, value] : run.settings)
    if (name == key) return value;
  return otherwise;
}

// What the page's form about samples begins with: the first run's numbers. Batch and ranks are those of the run's line
// of arithmetic, where global_batch_size has been divided and virtual ranks count.
json plan_of(const RunData& run) {
  long long global = 0, batch = 1, ranks = 1, accumulate = 1;
  const bool known =
      std::sscanf(run.arithmetic.c_str(), "global batch %lld = batch_size %lld x %*s %lld x accumulate %lld", &global,
                  &batch, &ranks, &accumulate) == 4;
  if (!known) ranks = run.world_size;
  const std::string seed = setting(run, "sampler.seed", "0");
  return {{"samples", run.samples > 0 ? run.samples : 16},
          {"world_size", ranks},
          {"batch_size", batch},
          {"accumulate", accumulate},
          {"epochs", setting(run, "train.epochs", "1")},
          {"uneven", setting(run, "sampler.uneven", "exact")},
          {"drop_last", setting(run, "sampler.drop_last", "false") == "true"},
          {"shuffle", setting(run, "sampler.shuffle", "true") == "true"},
          {"seed", seed}};
}

std::string_view part(std::string_view name, const std::string& data) {
  if (name == "page.css") return page::page_css;
  if (name == "chart.js") return page::chart_js;
  if (name == "plan.js") return page::plan_js;
  if (name == "pictures.js") return page::pictures_js;
  if (name == "sections.js") return page::sections_js;
  return data;
}

}  // namespace

std::string json_for_script(const json& value) {
  // Names come from file systems and need not be UTF-8.
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') {
      safe += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string html_report(const std::vector<RunData>& runs, const json& sweep) {
  json report{{"program", build_info()}, {"runs", json::array()}, {"phases", kStepPhases}, {"sweep", sweep}};
  for (const RunData& run : runs) report["runs"].push_back(page_of(run));
  report["plan"] = plan_of(runs.empty() ? RunData{} : runs.front());
  const std::string data = json_for_script(report);
  // One pass: what is put in is not looked at again.
  std::string html;
  for (std::string_view rest = page::page_html; !rest.empty();) {
    const size_t open = rest.find("{{"), close = open == rest.npos ? rest.npos : rest.find("}}", open);
    html += rest.substr(0, open);
    if (close == rest.npos) break;
    html += part(rest.substr(open + 2, close - open - 2), data);
    rest.remove_prefix(close + 2);
  }
  return html;
}

}  // namespace lockstep

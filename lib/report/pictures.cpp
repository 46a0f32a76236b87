#include "report/pictures.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/run_program.h"
#include "train/svg_chart.h"

namespace lockstep {
namespace {

struct Picture {
  std::string name;
  Panel panel;
};

bool has_points(const Picture& picture) {
  return std::ranges::any_of(picture.panel.curves, [](const Curve& curve) {
    return std::ranges::any_of(curve.points, [](const auto& point) { return std::isfinite(point.second); });
  });
}

Picture of_steps(const std::vector<RunData>& runs, std::string name, const std::string& label,
                 double StepLine::*value) {
  Panel panel{.title = label, .x_label = "samples seen", .y_label = label};
  const bool seen = std::ranges::all_of(
      runs, [](const RunData& run) { return run.steps.empty() || run.steps.back().samples_seen.has_value(); });
  if (!seen) panel.x_label = "optimizer step";
  for (const RunData& run : runs) {
    Curve& curve = panel.curves.emplace_back(Curve{.label = run.label});
    for (const StepLine& line : run.steps)
      curve.points.emplace_back(static_cast<double>(seen ? line.samples_seen.value_or(0) : line.step), line.*value);
  }
  return {std::move(name), std::move(panel)};
}

Picture of_validation(const std::vector<RunData>& runs, const std::string& metric) {
  Panel panel{.title = "validation " + metric, .x_label = "optimizer step", .y_label = metric};
  for (const RunData& run : runs) {
    Curve& curve = panel.curves.emplace_back(Curve{.label = run.label});
    for (const EvalLine& line : run.evals)
      if (const auto found = line.values.find(metric); found != line.values.end())
        curve.points.emplace_back(static_cast<double>(line.step), found->second);
  }
  std::string name = "validation_" + metric;  // from a file: no path may come of it
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return {std::move(name), std::move(panel)};
}

// A curve per phase over the ranks: a straggler is where the others' communication is high and its own is not.
Picture of_times(const RunData& run, size_t number) {
  Panel panel{.title = run.label, .x_label = "rank", .y_label = "ms per step"};
  const auto times = mean_times(run);
  for (size_t phase = 0; phase < kStepPhases.size(); ++phase) {
    Curve& curve = panel.curves.emplace_back(Curve{.label = std::string(kStepPhases[phase])});
    for (size_t rank = 0; rank < times.size(); ++rank)
      curve.points.emplace_back(static_cast<double>(rank), 1000 * times[rank][phase]);
  }
  return {fmt::format("time_{}", number), std::move(panel)};
}

std::vector<Picture> pictures_of(const std::vector<RunData>& runs) {
  std::vector<Picture> pictures{of_steps(runs, "training_loss", "training loss", &StepLine::loss),
                                of_steps(runs, "learning_rate", "learning rate", &StepLine::lr),
                                of_steps(runs, "gradient_norm", "gradient norm", &StepLine::gradient_norm),
                                of_steps(runs, "samples_per_second", "samples/s", &StepLine::samples_per_second)};
  std::set<std::string> metrics;
  for (const RunData& run : runs)
    for (const EvalLine& line : run.evals)
      for (const auto& [name, value] : line.values) metrics.insert(name);
  for (const std::string& metric : metrics) pictures.push_back(of_validation(runs, metric));
  for (size_t i = 0; i < runs.size(); ++i) pictures.push_back(of_times(runs[i], i));
  std::erase_if(pictures, [](const Picture& picture) { return !has_points(picture); });
  return pictures;
}

void make_png(const std::string& svg, const std::string& png) {
  constexpr double kLimit = 60;
  ProgramAnswer answer;
  try {
    answer = run_program({"rsvg-convert", "--zoom", "2", "--output", png, svg}, kLimit);
  } catch (const Error& error) {
    throw_error("{}: rsvg-convert makes the PNG files: install librsvg2-bin ({})", png, error.what());
  }
  if (answer.exit_code != 0) throw_error("{}: rsvg-convert failed: {}", png, answer.output);
}

}  // namespace

std::vector<std::string> write_pictures(const std::vector<RunData>& runs, const std::string& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem) throw_error("{}: cannot be made: {}", directory, problem.message());
  std::vector<std::string> written;
  for (const Picture& picture : pictures_of(runs)) {
    const std::string base = directory + "/" + picture.name;
    std::ofstream file(base + ".svg");
    file << svg_chart(picture.panel.title, {picture.panel});
    if (!file.flush()) throw_error("{}.svg: cannot be written", base);
    make_png(base + ".svg", base + ".png");
    written.push_back(base + ".png");
  }
  return written;
}

}  // namespace lockstep

// lockstep plot RUN... -o FILE: the training loss of several runs on each other, whole and zoomed.
#include <algorithm>
#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "core/text_file.h"
#include "report/run_data.h"
#include "train/svg_chart.h"

namespace lockstep::app {
namespace {

Curve losses(const RunData& run, bool validation) {
  Curve curve;
  for (const StepLine& line : run.steps)
    if (!validation) curve.points.emplace_back(line.step, line.loss);
  for (const EvalLine& line : run.evals)
    if (const auto loss = line.values.find("loss"); validation && loss != line.values.end())
      curve.points.emplace_back(line.step, loss->second);
  return curve;
}

// The second panel shows the last part of the runs, where curves that only look alike would come apart.
Panel zoomed(const Panel& whole, double from) {
  Panel zoom = whole;
  zoom.title = fmt::format("from step {:.0f}", from);
  for (Curve& curve : zoom.curves) std::erase_if(curve.points, [&](const auto& point) { return point.first < from; });
  return zoom;
}

}  // namespace

Command add_plot(CLI::App& parent) {
  struct Options {
    std::vector<std::string> runs, labels;
    std::string output = "curves.svg", title = "Training loss";
    bool validation = false;
    double zoom = 0.8;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("plot", "Draw the loss curves of runs into one SVG");
  command->add_option("RUN", options->runs, "Run directories")->required();
  command->add_option("-o,--output", options->output, "SVG file")->capture_default_str();
  command->add_option("--title", options->title, "Title")->capture_default_str();
  command->add_option("--label", options->labels, "Legend entry, one per run (default: the batch arithmetic)")
      ->allow_extra_args(false);
  command->add_flag("--validation", options->validation, "The validation loss instead of the training loss");
  command->add_option("--zoom", options->zoom, "Second panel: from this fraction of the steps on; 1: none")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  return [options] {
    if (!options->labels.empty() && options->labels.size() != options->runs.size())
      throw_error("--label: {} labels for {} runs", options->labels.size(), options->runs.size());
    Panel panel{.title = "all steps",
                .x_label = "optimizer step",
                .y_label = options->validation ? "validation loss" : "training loss"};
    double last = 0;
    for (size_t i = 0; i < options->runs.size(); ++i) {
      const RunData run = read_run_data(options->runs[i]);
      Curve curve = losses(run, options->validation);
      curve.label = !options->labels.empty() ? options->labels[i] : run.label + ": " + run.arithmetic;
      if (!curve.points.empty()) last = std::max(last, curve.points.back().first);
      panel.curves.push_back(std::move(curve));
    }
    std::vector<Panel> panels{panel};
    if (options->zoom < 1) panels.push_back(zoomed(panel, options->zoom * last));
    write_text_file(options->output, svg_chart(options->title, panels));
    std::printf("%s: %zu curves\n", options->output.c_str(), panel.curves.size());
    return static_cast<int>(kSuccess);
  };
}

}  // namespace lockstep::app

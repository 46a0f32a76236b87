// lockstep plot RUN... -o FILE: the training loss of several runs on each other, whole and zoomed.
#include <algorithm>
#include <fstream>
#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "train/run_reader.h"

namespace lockstep::app {
namespace {

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
      RunCurves run = read_run(options->runs[i]);
      Curve curve = options->validation ? std::move(run.validation_loss) : std::move(run.train_loss);
      curve.label = !options->labels.empty() ? options->labels[i] : run.label + ": " + run.arithmetic;
      if (!curve.points.empty()) last = std::max(last, curve.points.back().first);
      panel.curves.push_back(std::move(curve));
    }
    std::vector<Panel> panels{panel};
    if (options->zoom < 1) panels.push_back(zoomed(panel, options->zoom * last));
    std::ofstream file(options->output);
    file << svg_chart(options->title, panels);
    if (!file.flush()) throw_error("{}: cannot be written", options->output);
    std::printf("%s: %zu curves\n", options->output.c_str(), panel.curves.size());
    return static_cast<int>(kSuccess);
  };
}

}  // namespace lockstep::app

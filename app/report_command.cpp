// lockstep report RUN...: runs as one HTML file, or as pictures.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "core/text_file.h"
#include "report/html_report.h"
#include "report/pictures.h"

namespace lockstep::app {

Command add_report(CLI::App& parent) {
  struct Options {
    std::vector<std::string> runs;
    std::string output = "report.html", pictures;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "report", "Write runs as one HTML page that needs no network: curves, time per rank, batches, settings");
  command->add_option("RUN", options->runs, "Run directories")->required();
  auto* output = command->add_option("-o,--output", options->output, "HTML file")->capture_default_str();
  command->add_option("--png", options->pictures, "Write the pictures as PNG and SVG files into this folder instead")
      ->excludes(output);
  return [options] {
    std::vector<RunData> runs;
    for (const std::string& dir : options->runs) runs.push_back(read_run_data(dir));
    if (!options->pictures.empty()) {
      for (const std::string& file : write_pictures(runs, options->pictures)) std::printf("%s\n", file.c_str());
      return static_cast<int>(kSuccess);
    }
    write_text_file(options->output, html_report(runs, nullptr));
    std::printf("%s: %zu runs\n", options->output.c_str(), runs.size());
    return static_cast<int>(kSuccess);
  };
}

}  // namespace lockstep::app

// lockstep top RUN...: how far runs are, from what they write; follows them until they end.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <ranges>
#include <thread>

#include "app/commands.h"
#include "core/error.h"
#include "core/terminal.h"
#include "train/run_status.h"

namespace lockstep::app {

Command add_top(CLI::App& parent) {
  struct Options {
    std::vector<std::string> runs;
    double interval = 1;
    bool once = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("top", "Follow runs while they train: step, loss, rate, time left");
  command->add_option("RUN", options->runs, "Run directories")->required();
  command->add_option("--interval", options->interval, "Seconds between two looks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--once", options->once, "Look once; so it is where the output is no terminal");
  return [options] {
    std::vector<RunFollower> runs;
    for (const std::string& dir : options->runs) {
      if (!std::filesystem::is_directory(dir)) throw_error("{}: expected the folder of a run, found none", dir);
      runs.emplace_back(dir);
    }
    const bool follow = !options->once && is_terminal(1);
    for (;;) {
      std::ranges::for_each(runs, &RunFollower::update);
      if (follow) std::fputs("\033[H\033[2J", stdout);
      std::fputs(status_table(runs).c_str(), stdout);
      std::fflush(stdout);
      if (!follow || std::ranges::all_of(runs, &RunFollower::over)) return static_cast<int>(kSuccess);
      std::this_thread::sleep_for(std::chrono::duration<double>(options->interval));
    }
  };
}

}  // namespace lockstep::app

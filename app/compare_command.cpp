// lockstep compare A B: where the tensors of two checkpoints, runs or safetensors files differ, and by how much.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "train/saved/compare.h"

namespace lockstep::app {

Command add_compare(CLI::App& parent) {
  struct Options {
    std::string first, second;
    Tolerance tolerance;
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand("compare", "Compare the tensors of two checkpoints; exit code 0: equal");
  const char* what = "A checkpoint, a last or best file, a run directory, or a .safetensors file";
  command->add_option("A", options->first, what)->required();
  command->add_option("B", options->second, what)->required();
  command->add_option("--atol", options->tolerance.absolute, "Equal means |a - b| <= atol + rtol |b|")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--rtol", options->tolerance.relative, "See --atol")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--all", options->all, "Print equal tensors too");
  command->footer("Exit code: 0 equal, 1 different, 2 wrong input.");
  return [options] {
    const Comparison comparison = compare_saved(options->first, options->second, options->tolerance);
    std::fputs(comparison_text(comparison, options->all).c_str(), stdout);
    return static_cast<int>(comparison.equal() ? kSuccess : kRunFailed);
  };
}

}  // namespace lockstep::app

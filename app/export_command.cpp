// lockstep export CHECKPOINT: a saved model for other programs.
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "train/export/export.h"

namespace lockstep::app {

Command add_export(CLI::App& parent) {
  struct Options {
    std::string checkpoint, onnx, safetensors;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      parent.add_subcommand("export", "Write a checkpoint's model as ONNX or its weights as safetensors");
  command->add_option("CHECKPOINT", options->checkpoint, "A checkpoint, a last or best file, or a run directory")
      ->required();
  command->add_option("--onnx", options->onnx, "ONNX file: the network in its inference form, any batch size");
  command->add_option("--safetensors", options->safetensors, "safetensors file: the weights under PyTorch's names");
  return [options] {
    if (options->onnx.empty() && options->safetensors.empty()) throw_error("export: expected --onnx or --safetensors");
    const SavedRun run = read_saved_run(options->checkpoint, {});
    std::printf("%s\n", describe(run).c_str());
    if (!options->onnx.empty()) std::puts(export_onnx(run, sample_shape(run), options->onnx).c_str());
    if (!options->safetensors.empty()) std::puts(export_safetensors(run, options->safetensors).c_str());
    return static_cast<int>(kSuccess);
  };
}

}  // namespace lockstep::app

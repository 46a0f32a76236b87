// A saved model for other programs: as an ONNX graph, or its weights as a safetensors file.
#pragma once

#include <string>

#include "train/saved/saved_run.h"

namespace lockstep {

// The network in its inference form: one input [batch, sample...], one output [batch, ...], what the network gives (for
// classes the scores before any softmax of the loss), fp32 whatever the training's precision was. `run` was read on
// this process. Metadata: the checkpoint's step and the normalisation that the input must have had. Replaces the file
// at once when all is written. Error: the weights don't fit the model; the file cannot be written. Returns what was
// written, for people.
std::string export_onnx(const SavedRun& run, const Shape& sample, const std::string& path);

// The same weights under PyTorch's names, as the safetensors package would write them.
std::string export_safetensors(const SavedRun& run, const std::string& path);

}  // namespace lockstep

// A model layer by layer: shapes, parameters, floating-point operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.h"
#include "train/config.h"

namespace lockstep {

struct LayerRow {
  std::string name, kind;
  Shape output;  // of one sample
  int64_t parameters = 0, trainable = 0;
  int64_t forward = 0, training = 0;  // FLOPs of one sample (nn/flops.h)
};

struct ModelTable {
  Shape sample;
  std::vector<LayerRow> layers;
  LayerRow total() const;
};

// Error: a model that the samples don't fit.
ModelTable model_table(const Config& config, const Shape& sample);
std::string model_text(const ModelTable& table);

std::string flops_text(int64_t flops);  // "23.9 MFLOP"

}  // namespace lockstep

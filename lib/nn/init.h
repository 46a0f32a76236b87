// PyTorch's default initialisation as free functions on plain spans: same values, same number of generator words.
// A layer calls them in PyTorch's order: weight (row-major, output dimension first), then bias.
#pragma once

#include <cstdint>
#include <span>

#include "core/rng.h"

namespace lockstep {

// Weight of Linear (fan_in = in features) and Conv (fan_in = in channels / groups * kernel elements): uniform in
// +-sqrt(3) * gain / sqrt(fan_in), gain of a leaky ReLU of slope sqrt(5), that is about +-1 / sqrt(fan_in).
// One word an element. Error: fan_in < 1.
void init_kaiming_uniform(Generator& generator, std::span<float> weight, int64_t fan_in);

// Bias beside such a weight: uniform in +-1 / sqrt(fan_in), one word an element. Error: fan_in < 1.
void init_bias_uniform(Generator& generator, std::span<float> bias, int64_t fan_in);

}  // namespace lockstep

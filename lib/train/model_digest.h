// One line that tells whether two runs ended with the same bits.
#pragma once

#include <string>

#include "nn/parameter_store.h"

namespace lockstep {

// SHA-256 over names, shapes and values of all parameters and buffers in registration order and PyTorch's layout, as 64
// hexadecimal digits: it doesn't depend on how a CPU's plans store them.
std::string model_digest(const ParameterStore& store);

}  // namespace lockstep

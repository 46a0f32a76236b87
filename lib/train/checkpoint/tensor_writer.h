// Writes safetensors files tensor by tensor: one tensor is in memory at a time. The bytes are a function of names,
// types, shapes and values: the order of `tensors` changes nothing. Largest elements first and then by name, header
// padded to 8 bytes, so every tensor is aligned and the file is the one the safetensors packages write.
#pragma once

#include <vector>

#include "train/checkpoint/directory.h"
#include "train/checkpoint/new_file.h"
#include "train/checkpoint/snapshot.h"

namespace lockstep {

// Error: a name twice, a name that is not UTF-8, a shape that overflows; what NewFile says.
FileSum write_tensor_file(const Directory& directory, const std::string& name,
                          const std::vector<TensorSource>& tensors);
uint64_t tensor_file_bytes(const std::vector<TensorSource>& tensors);  // what it will have

}  // namespace lockstep

// The JSON header of a safetensors file: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "train/checkpoint/tensor_file.h"

namespace lockstep {

struct TensorHeader {
  TensorFile::Entries entries;
  std::map<std::string, std::string> metadata;
};

// Read event by event: nothing is built but what is asked for, however deep or long the text. Error, naming `path`: not
// JSON, another form, a name or key twice. Offsets are as they stand, see check_offsets.
TensorHeader parse_tensor_header(std::string_view text, const std::string& path);
// Error unless the tensors' bytes follow one another without holes from 0 to `data_bytes`, each as many as its shape
// says.
void check_offsets(const TensorFile::Entries& entries, uint64_t data_bytes, const std::string& path);

}  // namespace lockstep

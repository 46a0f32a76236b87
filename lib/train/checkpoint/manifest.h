// manifest.json, written last: what belongs to a checkpoint, with sizes and checksums, its own included.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "train/checkpoint/new_file.h"

namespace lockstep {

inline constexpr const char* kManifestName = "manifest.json";

struct Manifest {
  static constexpr int64_t kFormat = 1;  // of the whole checkpoint: counts up when older programs cannot read it
  int64_t step = 0;
  std::map<std::string, FileSum> files;  // by plain name
};

std::string to_json(const Manifest& manifest);
// Error, naming `path`: another format, a name that is no plain one, or any byte that to_json would not have written.
Manifest parse_manifest(std::string_view text, const std::string& path);

}  // namespace lockstep

#include "core/text_file.h"

#include <fstream>

#include "core/error.h"

namespace lockstep {

void write_text_file(const std::string& path, std::string_view text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw_error("{}: cannot be written", path);
}

}  // namespace lockstep

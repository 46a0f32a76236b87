// A text written as a whole file.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Throws Error "PATH: cannot be written". For what must be whole after a crash see train/checkpoint/new_file.h.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace lockstep

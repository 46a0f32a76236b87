// Where tests that write many checkpoints do it: flushing to the disk takes no time there.
#pragma once

#include <filesystem>

namespace lockstep::test {

inline std::filesystem::path memory_folder() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

}  // namespace lockstep::test

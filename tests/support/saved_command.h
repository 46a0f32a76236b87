// The commands that come after training, with the real program.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"

namespace lockstep::test {

inline std::vector<std::string> lockstep_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LOCKSTEP_BINARY);
  return arguments;
}

inline Outcome run_lockstep(const std::vector<std::string>& arguments, double limit_seconds = 60) {
  return run_process(lockstep_command(arguments), limit_seconds);
}

inline Outcome run_lockstep_on(int ranks, const std::vector<std::string>& arguments, double limit_seconds = 60) {
  return run_process(mpirun(ranks, lockstep_command(arguments)), limit_seconds);
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// NumPy's file of bytes or floats, for inputs.
template <class T>
void write_npy(const std::filesystem::path& path, const std::vector<int64_t>& shape, const std::vector<T>& values) {
  std::string dims;
  for (const int64_t dim : shape) dims += std::to_string(dim) + ", ";
  const std::string type = sizeof(T) == 1 ? "|u1" : sizeof(T) == 8 ? "<i8" : "<f4";
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + dims + "), }\n";
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
  file << header;
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

}  // namespace lockstep::test

// Runs of the real program that outlive one launch: killed, resumed, interrupted, compared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/process.h"

namespace lockstep::test {

// A config in a folder of its own, which is also where its runs write.
class RunFolder {
 public:
  explicit RunFolder(const char* yaml);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Trains into run directory `name`. arguments: after "lockstep train FILE"; environment: NAME=VALUE.
  Outcome train(const std::string& name, int ranks, const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment = {}, double limit_seconds = 100) const;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Steps and validations of a run directory's log without times, and the end's digest of the weights.
struct Told {
  std::vector<std::string> events;
  std::string digest;
  std::map<int64_t, std::set<int64_t>> rows;  // of each step, whichever rank took them (log.indices)
};
Told told(const std::filesystem::path& run);

std::string bytes_of(const std::filesystem::path& file);
// Every file of every checkpoint by name; but the config names the folder, and the manifest has its checksum.
std::map<std::string, std::string> checkpoint_bytes(const std::filesystem::path& run);

}  // namespace lockstep::test

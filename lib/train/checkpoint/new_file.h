// A file that did not exist before, written from front to back with its checksum. All errors come with the system's
// reason: disk full, quota, limit on file sizes.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "train/checkpoint/directory.h"

namespace lockstep {

struct FileSum {
  uint64_t size = 0;
  uint32_t crc = 0;  // CRC-32 as in zip and gzip
  void add(std::span<const std::byte> bytes);
  bool operator==(const FileSum& other) const = default;
};

class NewFile {
 public:
  NewFile(const Directory& directory, const std::string& name);  // Error: it is there already
  void write(std::span<const std::byte> bytes);
  FileSum finish();  // on the disk and closed; an unfinished file is worth nothing

 private:
  std::string path_;
  Descriptor file_;
  FileSum sum_;
};

// While it lives, a file that would pass the limit on file sizes (ulimit -f) is an error of this thread's write() and
// not the signal that ends the process.
class FileLimitIsError {
 public:
  FileLimitIsError();
  ~FileLimitIsError();
  FileLimitIsError(const FileLimitIsError&) = delete;
  FileLimitIsError& operator=(const FileLimitIsError&) = delete;

 private:
  sigset_t before_{};
};

// "No space left on device", and what that means to people where the system's words are few.
std::string system_reason(int error);

}  // namespace lockstep

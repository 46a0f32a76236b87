// A file read once from front to back, plain or gzip (told by its first bytes, not by its name). Damage is an error.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class InputFile {
 public:
  // Throws Error when the file is missing, not a regular file, or empty.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  bool compressed() const { return inflate_ != nullptr; }
  uint64_t position() const { return position_; }  // bytes given out so far, after decompression

  // Fills `out`; gives fewer bytes only at the end of the file. A gzip file may have several members, which are read as
  // one, like gunzip does. Throws Error: CRC or length error, truncated member, other bytes after the last member.
  size_t read(std::span<uint8_t> out);
  // As read, but fewer bytes than out.size() are an error that says how many of what were expected and found.
  void read_exactly(std::span<uint8_t> out, std::string_view what);
  // The rest of the file, which must be exactly `bytes` long. Never allocates more than the file can hold: a plain file
  // must have that size, the vector for a gzip file grows as its bytes come out. `what` names them: "pixels (60000 x 28
  // x 28)".
  std::vector<uint8_t> read_rest(uint64_t bytes, std::string_view what);

 private:
  struct Inflate;
  struct CloseFile {
    void operator()(std::FILE* file) const;
  };
  size_t read_raw(std::span<uint8_t> out);
  size_t read_inflated(std::span<uint8_t> out);

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  uint64_t file_size_ = 0, position_ = 0;
  std::unique_ptr<Inflate> inflate_;  // null: a plain file
};

// a * b for sizes read from files; throws Error naming `what` when it passes 2^63.
uint64_t checked_product(uint64_t a, uint64_t b, std::string_view what);

}  // namespace lockstep

// A directory held open by its descriptor. Files in it are reached by plain names only and never through links, and
// what was written is on the disk when a call returns: every write, flush and close is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class Descriptor {  // of an open file or directory; -1: none
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int number() const { return number_; }
  int release();  // the caller closes it

 private:
  int number_;
};

class Directory {
 public:
  // The path is the user's own and may go through links. Error: there is none, or it cannot be read.
  static Directory open(const std::string& path);
  Directory below(const std::string& name) const;  // Error: a link, no directory

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_.number(); }
  std::vector<std::string> names() const;               // sorted
  bool holds_file(const std::string& name) const;       // a regular one, no link
  bool holds_directory(const std::string& name) const;  // the same
  // Error: missing, a link or not regular, larger than `most` bytes.
  std::vector<std::byte> read(const std::string& name, uint64_t most) const;

  void make(const std::string& name) const;                           // Error: it is there already
  void rename(const std::string& from, const std::string& to) const;  // Error: `to` is a directory with files
  // Puts directory `from` in the place of `to`. What was there is `from` now or, where the file system cannot exchange
  // two names at once, was moved to "TO.old" before and is there.
  void exchange(const std::string& from, const std::string& to) const;
  void remove(const std::string& name) const;  // with all it holds, but nothing through links
  // A small file that readers see as it was or as it is, never between; it grows as "NAME.tmp".
  void replace_text(const std::string& name, std::string_view text) const;
  void flush() const;  // names made, renamed and removed are on the disk then

 private:
  Directory(Descriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  Descriptor descriptor_;
  std::string path_;
};

// "conv.safetensors": a name that leads nowhere else.
bool is_plain_name(std::string_view name);
// A file of the user's own naming, links and all. Error: missing, not regular, more than the machine's memory.
std::vector<std::byte> read_file(const std::string& path);
std::span<const std::byte> as_bytes(std::string_view text);
std::string_view as_text(std::span<const std::byte> bytes);

}  // namespace lockstep

#include "train/checkpoint/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "core/error.h"
#include "train/checkpoint/new_file.h"

namespace lockstep {
namespace {

Descriptor open_at(int directory, const std::string& name, int flags, const std::string& shown) {
  Descriptor opened(openat(directory, name.c_str(), flags | O_RDONLY | O_CLOEXEC));
  if (opened.number() >= 0) return opened;
  if (errno == ELOOP && (flags & O_NOFOLLOW) != 0) throw_error("{}: is a link, which is not followed here", shown);
  if (errno == ENOENT) throw_error("{}: is missing", shown);
  throw_error("{}: cannot be opened: {}", shown, system_reason(errno));
}

uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : UINT64_MAX;
}

std::vector<std::byte> read_all(const Descriptor& file, uint64_t most, const std::string& shown) {
  struct stat status {};
  if (fstat(file.number(), &status) != 0) throw_error("{}: cannot be looked at: {}", shown, system_reason(errno));
  if (!S_ISREG(status.st_mode)) throw_error("{}: is not a regular file", shown);
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > most) throw_error("{}: expected {} bytes at most, found {}", shown, most, size);
  const uint64_t memory = machine_memory();
  if (size > memory) throw_error("{}: has {} bytes, the machine's memory {}", shown, size, memory);
  std::vector<std::byte> bytes(size);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(file.number(), bytes.data() + done, std::min<size_t>(bytes.size() - done, 1U << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_error("{}: cannot be read: {}", shown, system_reason(errno));
    if (got == 0) throw_error("{}: expected {} bytes, found {}: it was changed meanwhile", shown, size, done);
    done += static_cast<size_t>(got);
  }
  return bytes;
}

bool holds(int directory, const std::string& name, mode_t type) {
  struct stat status {};
  return fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && (status.st_mode & S_IFMT) == type;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

int Descriptor::release() { return std::exchange(number_, -1); }

bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 128 && name.front() != '.' && std::ranges::all_of(name, plain);
}

std::vector<std::byte> read_file(const std::string& path) {
  return read_all(open_at(AT_FDCWD, path, O_NONBLOCK, path), UINT64_MAX, path);  // a pipe must not make it wait
}

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Directory Directory::open(const std::string& path) { return {open_at(AT_FDCWD, path, O_DIRECTORY, path), path}; }

Directory Directory::below(const std::string& name) const {
  const std::string shown = path_ + "/" + name;
  return {open_at(descriptor(), name, O_DIRECTORY | O_NOFOLLOW, shown), shown};
}

std::vector<std::string> Directory::names() const {
  Descriptor own = open_at(descriptor(), ".", O_DIRECTORY, path_);
  const auto close_stream = [](DIR* stream) { closedir(stream); };
  const std::unique_ptr<DIR, decltype(close_stream)> stream(fdopendir(own.number()));
  if (!stream) throw_error("{}: cannot be listed: {}", path_, system_reason(errno));
  own.release();
  std::vector<std::string> found;
  errno = 0;
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") found.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) throw_error("{}: cannot be listed: {}", path_, system_reason(errno));
  std::ranges::sort(found);
  return found;
}

bool Directory::holds_file(const std::string& name) const { return holds(descriptor(), name, S_IFREG); }
bool Directory::holds_directory(const std::string& name) const { return holds(descriptor(), name, S_IFDIR); }

std::vector<std::byte> Directory::read(const std::string& name, uint64_t most) const {
  const std::string shown = path_ + "/" + name;
  return read_all(open_at(descriptor(), name, O_NOFOLLOW | O_NONBLOCK, shown), most, shown);
}

void Directory::make(const std::string& name) const {
  if (mkdirat(descriptor(), name.c_str(), 0755) != 0)
    throw_error("{}/{}: cannot be made: {}", path_, name, system_reason(errno));
}

void Directory::rename(const std::string& from, const std::string& to) const {
  if (renameat(descriptor(), from.c_str(), descriptor(), to.c_str()) != 0)
    throw_error("{}/{}: cannot be renamed to {}: {}", path_, from, to, system_reason(errno));
}

void Directory::exchange(const std::string& from, const std::string& to) const {
  if (renameat2(descriptor(), from.c_str(), descriptor(), to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS)
    throw_error("{}/{}: cannot take the place of {}: {}", path_, from, to, system_reason(errno));
  rename(to, to + ".old");
  rename(from, to);
}

void Directory::remove(const std::string& name) const {
  std::error_code error;
  std::filesystem::remove_all(path_ + "/" + name, error);
  if (error) throw_error("{}/{}: cannot be removed: {}", path_, name, error.message());
}

void Directory::replace_text(const std::string& name, std::string_view text) const {
  const std::string growing = name + ".tmp";
  remove(growing);
  NewFile file(*this, growing);
  file.write(as_bytes(text));
  file.finish();
  rename(growing, name);
  flush();
}

void Directory::flush() const {
  // Some file systems have nothing to flush in a directory and say so.
  if (fsync(descriptor()) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw_error("{}: cannot be flushed to the disk: {}", path_, system_reason(errno));
}

}  // namespace lockstep

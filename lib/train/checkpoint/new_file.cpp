#include "train/checkpoint/new_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr size_t kBlock = size_t{1} << 20;  // checksummed and written while it is in the cache

sigset_t file_limit_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

}  // namespace

std::string system_reason(int error) {
  const std::string text = std::generic_category().message(error);
  switch (error) {
    case ENOSPC: return text + " (the disk is full)";
    case EDQUOT: return text + " (the user's quota on this disk is used up)";
    case EFBIG: return text + " (over the limit on file sizes: see ulimit -f)";
    default: return text;
  }
}

void FileSum::add(std::span<const std::byte> bytes) {
  size += bytes.size();
  crc = static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

NewFile::NewFile(const Directory& directory, const std::string& name)
    : path_(directory.path() + "/" + name),
      file_(openat(directory.descriptor(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (file_.number() < 0) throw_error("{}: cannot be made: {}", path_, system_reason(errno));
}

void NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::span<const std::byte> block = bytes.first(std::min(bytes.size(), kBlock));
    bytes = bytes.subspan(block.size());
    sum_.add(block);
    while (!block.empty()) {
      const ssize_t written = ::write(file_.number(), block.data(), block.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        throw_error("{}: cannot be written beyond {} bytes: {}", path_, sum_.size - block.size(), system_reason(errno));
      block = block.subspan(static_cast<size_t>(written));
    }
  }
}

FileSum NewFile::finish() {
  while (fsync(file_.number()) != 0) {
    if (errno != EINTR) throw_error("{}: cannot be flushed to the disk: {}", path_, system_reason(errno));
  }
  // EINTR after close() means closed on Linux; the bytes are safe already.
  if (close(file_.release()) != 0 && errno != EINTR)
    throw_error("{}: cannot be closed: {}", path_, system_reason(errno));
  return sum_;
}

FileLimitIsError::FileLimitIsError() {
  const sigset_t blocked = file_limit_signal();
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

FileLimitIsError::~FileLimitIsError() {
  const sigset_t blocked = file_limit_signal();
  const timespec now{};
  while (sigtimedwait(&blocked, nullptr, &now) == SIGXFSZ) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep

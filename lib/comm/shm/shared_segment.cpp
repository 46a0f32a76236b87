#include "comm/shm/shared_segment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>

#include "comm/mpi/mpi_call.h"
#include "comm/run_agreed.h"
#include "core/error.h"

namespace lockstep {
namespace {

constexpr size_t page = 4096;

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// Removes the name on every way out; mapped memory lives on without it.
struct Name {
  char text[64] = {};
  bool owned = false;
  ~Name() {
    if (owned) shm_unlink(text);
  }
};

constexpr auto prefix = "lockstep-";
constexpr time_t old_enough = 10;  // seconds; younger ones may be on their way to being locked

void create(Name& name, Descriptor& file, size_t bytes) {
  remove_leftover_segments();
  std::random_device random;
  for (int attempt = 0; attempt < 16 && file.fd < 0; ++attempt) {
    const auto text = fmt::format("/{}{}-{:08x}", prefix, getpid(), random());
    std::memcpy(name.text, text.c_str(), text.size() + 1);
    file.fd = shm_open(name.text, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file.fd < 0 && errno != EEXIST) break;
  }
  if (file.fd < 0) throw_error("shared memory: cannot create {}: {}", name.text, std::strerror(errno));
  name.owned = true;
  // Held as long as the name is: who can take it knows that nobody will remove the name any more.
  if (flock(file.fd, LOCK_EX | LOCK_NB) != 0)
    throw_error("shared memory: cannot lock {}: {}", name.text, std::strerror(errno));
  if (ftruncate(file.fd, static_cast<off_t>(bytes)) != 0)
    throw_error("shared memory: cannot size {} to {} bytes: {}", name.text, bytes, std::strerror(errno));
}

void check_room(int fd, size_t bytes) {
  struct statvfs room = {};
  if (fstatvfs(fd, &room) != 0) return;  // reserving the pages below tells for certain
  const uint64_t free_bytes = static_cast<uint64_t>(room.f_bavail) * room.f_frsize;
  if (room.f_blocks > 0 && free_bytes < bytes)
    throw_error(
        "shared memory: {} bytes needed, /dev/shm has {} free: enlarge it (docker run --shm-size=2g) or set "
        "distributed.backend: mpi",
        bytes, free_bytes);
}

// Writes to each page without changing it, also where another rank may be writing already.
void touch(std::byte* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += page)
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(data + at)).fetch_or(0, std::memory_order_relaxed);
}

}  // namespace

int remove_leftover_segments() {
  int removed = 0;
  std::error_code gone;  // names come and go meanwhile, and no folder means no leftovers
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", gone)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    const Descriptor file{open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    struct stat status = {};
    if (file.fd < 0 || fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) continue;
    if (time(nullptr) - status.st_ctime < old_enough || flock(file.fd, LOCK_EX | LOCK_NB) != 0) continue;
    removed += shm_unlink(("/" + name).c_str()) == 0 ? 1 : 0;
  }
  return removed;
}

SharedSegment::SharedSegment(MPI_Comm node, size_t bytes_per_rank) {
  const int rank = mpi::rank(node), size = mpi::size(node);
  stride_ = align_up(bytes_per_rank, page);
  const size_t bytes = stride_ * static_cast<size_t>(size);
  Descriptor file;
  Name name;
  run_agreed(node, [&] {
    if (stride_ < bytes_per_rank || bytes / size != stride_)
      throw_error("shared memory: {} bytes is too much", bytes_per_rank);
    if (rank != 0) return;
    create(name, file, bytes);
    check_room(file.fd, bytes);
  });
  mpi::check(MPI_Bcast(name.text, sizeof(name.text), MPI_CHAR, 0, node), "MPI_Bcast");
  run_agreed(node, [&] {
    if (rank != 0) file.fd = shm_open(name.text, O_RDWR, 0600);
    if (file.fd < 0) throw_error("shared memory: cannot open {}: {}", name.text, std::strerror(errno));
    // Each rank reserves its own part: the pages come from its memory node, and a lack of room is an error here
    // instead of a signal later.
    if (stride_ > 0) {
      const off_t start = static_cast<off_t>(rank * stride_);
      if (const int problem = posix_fallocate(file.fd, start, static_cast<off_t>(stride_)); problem != 0)
        throw_error("shared memory: cannot reserve {} bytes of /dev/shm: {}", stride_, std::strerror(problem));
      void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
      if (mapped == MAP_FAILED) throw_error("shared memory: cannot map {} bytes: {}", bytes, std::strerror(errno));
      mapped_ = Buffer(mapped, bytes, [bytes](void* memory) { munmap(memory, bytes); });
    }
  });
  touch(data(), mapped_.bytes());
  mpi::check(MPI_Barrier(node), "MPI_Barrier");  // rank 0 removes the name when all have mapped it
}

}  // namespace lockstep

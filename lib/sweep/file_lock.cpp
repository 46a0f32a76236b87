#include "sweep/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

namespace lockstep {
namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

bool take_lock(int file) {
  struct flock lock = whole_file(F_WRLCK);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool is_locked(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct flock lock = whole_file(F_RDLCK);
  const bool locked = fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(file);
  return locked;
}

}  // namespace lockstep

#include "support/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "core/error.h"

namespace lockstep::test {

pid_t start_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child < 0) throw_error("fork: {}", std::strerror(errno));
  if (child > 0) return child;
  try {
    work();
  } catch (const std::exception&) {
    _exit(1);
  }
  _exit(0);
}

std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_error("pipe: {}", std::strerror(errno));
  const pid_t child = start_child([&] {
    std::string text;
    try {
      text = work();
    } catch (const std::exception& error) {
      text = error.what();
    }
    if (write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(2);
  });
  close(ends[1]);
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = read(ends[0], block, sizeof block)) > 0;) text.append(block, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status)) : text;
}

bool mount_small_disk(const std::string& dir, size_t bytes) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", dir.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, fmt::format("size={}", bytes).c_str()) == 0;
}

bool make_read_only(const std::string& dir) {
  return mount("tmpfs", dir.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) == 0;
}

}  // namespace lockstep::test

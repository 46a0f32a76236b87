#include "core/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace lockstep {
namespace {

bool started_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr; }

int open_of_parent(int descriptor) {
  return open(fmt::format("/proc/{}/fd/{}", getppid(), descriptor).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

bool is_terminal(int descriptor) {
  if (isatty(descriptor) == 0) return false;
  if (!started_by_mpirun()) return true;
  const int parents = open_of_parent(descriptor);
  if (parents < 0) return false;  // on another machine than mpirun
  const bool watched = isatty(parents) != 0;
  close(parents);
  return watched;
}

int terminal_width(int descriptor) {
  const int parents = started_by_mpirun() ? open_of_parent(descriptor) : -1;
  winsize size{};
  const bool known = ioctl(parents < 0 ? descriptor : parents, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  if (parents >= 0) close(parents);
  return known ? size.ws_col : 80;
}

}  // namespace lockstep

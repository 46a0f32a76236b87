#include "comm/watchdog.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace lockstep {

Watchdog::Watchdog(std::string name, int exit_code) : name_(std::move(name)), exit_code_(exit_code) {
  // Signals are for the other threads: this one starts with all of them blocked.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::expect(std::string place, double limit_seconds) {
  {
    const std::lock_guard lock(mutex_);
    place_ = std::move(place);
    limit_seconds_ = limit_seconds;
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_seconds));
    armed_ = true;
  }
  changed_.notify_one();
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  armed_ = false;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!done_ && !(armed_ && Clock::now() >= end_)) {
    if (armed_) {
      changed_.wait_until(lock, end_);
    } else {
      changed_.wait(lock);
    }
  }
  if (done_) return;
  const std::string line =
      fmt::format("{}: waited {:g} s in {} for other ranks: one that does not say this has not come so far\n", name_,
                  limit_seconds_, place_);
  // One write, so that the lines of several ranks don't mix; where it can't be written, the exit code has to do.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) std::_Exit(exit_code_);
  std::_Exit(exit_code_);
}

}  // namespace lockstep

// A time limit for what has none of its own: MPI's start and end, and everything before there is a communicator. A rank
// that never comes would keep the others in there for ever, and nothing in there can be interrupted, so a thread beside
// it ends the process. The launcher then ends the other ranks, as it does after any process that leaves early.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep {

class Watchdog {
 public:
  // name: of this process in the message, "rank 1".
  Watchdog(std::string name, int exit_code);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Unless it is told something else within so many seconds, the process ends with a message on stderr that says where
  // it was waiting: "MPI_Init".
  void expect(std::string place, double limit_seconds);
  // Nothing to wait for: what comes next has limits of its own.
  void rest();

 private:
  using Clock = std::chrono::steady_clock;
  void watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, armed_ = false;
  Clock::time_point end_;
  double limit_seconds_ = 0;
  std::string name_, place_;
  int exit_code_;
  std::thread thread_;
};

}  // namespace lockstep

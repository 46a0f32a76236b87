// For tests of failures only: makes one rank go wrong at one place. The environment variable LOCKSTEP_FAULT says which,
// RANK,PLACE,ACTION:
//   PLACE   start | preparation | step:N | forward:N | loader:N | save:N | evaluation:N   (before MPI is started;
//   before
//           data is read; before optimizer step N, and in its forward passes; in the loader, before its N-th batch,
//           from 0, is assembled; before the checkpoint, and the evaluation, after N steps)
//   ACTION  sleep:SECONDS | throw | memory | kill | stop | term | usr1   (memory: std::bad_alloc; the last four: the
//           signals SIGKILL, SIGSTOP, SIGTERM and SIGUSR1 to itself)
// LOCKSTEP_FAULT=1,step:3,sleep:60 lets rank 1 sleep for a minute before step 3. Unset, as it should be: nothing.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

class Fault {
 public:
  // Reads the environment; throws Error for what is not as above. Before MPI has started, rank is the launcher's
  // (comm/launcher.h).
  explicit Fault(int rank);

  void at_start() const { at(Place::start, 0); }
  void at_preparation() const { at(Place::preparation, 0); }
  void at_step(int64_t step) const { at(Place::step, step); }
  void at_forward(int64_t step) const { at(Place::forward, step); }
  void at_loader(int64_t batch) const { at(Place::loader, batch); }
  void at_save(int64_t steps) const { at(Place::save, steps); }
  void at_evaluation(int64_t steps) const { at(Place::evaluation, steps); }

 private:
  enum class Place : uint8_t { none, start, preparation, step, forward, loader, save, evaluation };
  void at(Place place, int64_t number) const {
    if (place_ == place && number_ == number) act();
  }
  void act() const;

  Place place_ = Place::none;
  int64_t number_ = 0;
  std::string action_;
  double seconds_ = 0;
};

}  // namespace lockstep

// For tests of failures only: makes one rank go wrong at one place. The environment variable LOCKSTEP_FAULT says which,
// RANK,PLACE,ACTION:
//   PLACE   preparation | step:N            (before data is read; before optimizer step N)
//   ACTION  sleep:SECONDS | throw | kill | stop   (kill, stop: the signals SIGKILL and SIGSTOP to itself)
// LOCKSTEP_FAULT=1,step:3,sleep:60 lets rank 1 sleep for a minute before step 3. Unset, as it should be: nothing.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

class Fault {
 public:
  explicit Fault(int rank);  // reads the environment; throws Error for what is not as above

  void at_preparation() const {
    if (place_ == Place::preparation) act();
  }
  void at_step(int64_t step) const {
    if (place_ == Place::step && step == step_) act();
  }

 private:
  enum class Place : uint8_t { none, preparation, step };
  void act() const;

  Place place_ = Place::none;
  int64_t step_ = 0;
  std::string action_;
  double seconds_ = 0;
};

}  // namespace lockstep

// Tags of the point-to-point messages on a communicator of our own.
#pragma once

#include <cstdint>

namespace lockstep::mpi::tag {

constexpr int data = 1;
constexpr int gave_up = 2;
// A roll call belongs to one collective: who answered in an earlier one may be missing in this one.
constexpr int roll_call(uint64_t sequence) { return 8192 + static_cast<int>(sequence % 8192); }

}  // namespace lockstep::mpi::tag

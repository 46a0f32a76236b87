// Tags of the point-to-point messages on a communicator of our own.
#pragma once

namespace lockstep::mpi::tag {

constexpr int data = 1;
constexpr int roll_call = 4711;
constexpr int gave_up = 4712;

}  // namespace lockstep::mpi::tag

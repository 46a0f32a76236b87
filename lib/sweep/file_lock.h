// Locks on files that others can see without taking them: held by an open file, so also by the children that inherit
// it, and gone with the last of them however it ends.
#pragma once

#include <string>

namespace lockstep {

// For an open file that can be written. False: another open file holds the lock.
bool take_lock(int file);
// Whether some open file, here or on another machine of a shared file system, holds the lock.
bool is_locked(const std::string& path);

}  // namespace lockstep

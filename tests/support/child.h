// A part of a test in a process of its own, forked from this one: to be killed, limited or to mount what others must
// not see.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace lockstep::test {

// Starts `work` in a child, which ends when it returns. Error: no process can be made.
pid_t start_child(const std::function<void()>& work);
// What `work` returned in a child, or the message of what it threw; "killed by signal 25" where it ended like that.
std::string in_child(const std::function<std::string()>& work);

// In a child only: an empty file system of so many bytes on `dir`, seen by this process alone. False: not allowed here.
bool mount_small_disk(const std::string& dir, size_t bytes);
bool make_read_only(const std::string& dir);  // that file system

}  // namespace lockstep::test

// A folder for the files of a test whose ranks are processes.
#pragma once

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "comm/mpi_env.h"
#include "support/memory_folder.h"

namespace lockstep::test {

// All ranks know it; empty at first and gone in the end. Collective.
class SharedFolder {
 public:
  explicit SharedFolder(const MpiEnvironment& env) : env_(env) {
    int owner = getpid();
    MPI_Bcast(&owner, 1, MPI_INT, 0, env.world());
    path_ = (memory_folder() / fmt::format("lockstep_test_{}", owner)).string();
    clear();
  }
  ~SharedFolder() { clear(); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  void clear() {
    MPI_Barrier(env_.world());
    if (env_.rank() == 0) std::filesystem::remove_all(path_);
    MPI_Barrier(env_.world());
  }
  const MpiEnvironment& env_;
  std::string path_;
};

}  // namespace lockstep::test

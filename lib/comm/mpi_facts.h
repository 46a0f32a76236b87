// What the MPI library says about itself.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

struct MpiFacts {
  std::string library;             // "Open MPI v4.1.4"
  std::string standard;            // "3.1"
  std::string thread_level;        // "MPI_THREAD_MULTIPLE"
  std::optional<bool> cuda_aware;  // empty: it does not say
};

MpiFacts mpi_facts();       // MPI runs
std::string mpi_library();  // "Open MPI v4.1.4", also before MPI runs

}  // namespace lockstep

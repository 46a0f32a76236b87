#include "comm/mpi_facts.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "comm/mpi/mpi_call.h"
#include "comm/mpi_env.h"

namespace lockstep {

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  mpi::check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));
}

MpiFacts mpi_facts() {
  MpiFacts facts;
  int version = 0, subversion = 0, level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Get_version(&version, &subversion), "MPI_Get_version");
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  facts.library = mpi_library();
  facts.standard = fmt::format("{}.{}", version, subversion);
  facts.thread_level = thread_level_name(level);
  // An extension of Open MPI and its relatives; whoever lacks the function has nothing to say.
  if (auto* query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"))) {
    facts.cuda_aware = query() != 0;
  }
  return facts;
}

}  // namespace lockstep

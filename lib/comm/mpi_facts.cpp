#include "comm/mpi_facts.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "comm/mpi/mpi_call.h"
#include "comm/mpi_env.h"

namespace lockstep {

MpiFacts mpi_facts() {
  MpiFacts facts;
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0, version = 0, subversion = 0, level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  mpi::check(MPI_Get_version(&version, &subversion), "MPI_Get_version");
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  facts.library.assign(text, static_cast<size_t>(length));
  facts.library.resize(facts.library.find_first_of(",\n") == std::string::npos ? facts.library.size()
                                                                               : facts.library.find_first_of(",\n"));
  facts.standard = fmt::format("{}.{}", version, subversion);
  facts.thread_level = thread_level_name(level);
  // An extension of Open MPI and its relatives; whoever lacks the function has nothing to say.
  if (auto* query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"))) {
    facts.cuda_aware = query() != 0;
  }
  return facts;
}

}  // namespace lockstep

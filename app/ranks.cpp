#include "app/ranks.h"

#include <cstdio>
#include <exception>
#include <string>

#include "app/commands.h"
#include "comm/abort_all.h"
#include "comm/launcher.h"
#include "comm/malloc_policy.h"
#include "comm/run_agreed.h"
#include "core/log.h"

namespace lockstep::app {

// Seconds until all ranks have started, and until they have left.
static constexpr double kStartLimit = 600, kEndLimit = 120;

std::string name_of_process(int launcher_rank) {
  return launcher_rank < 0 ? "lockstep" : fmt::format("rank {}", launcher_rank);
}

int tell_failures(const MpiEnvironment& mpi, Watchdog& watchdog, const std::function<double()>& end_limit,
                  const std::function<int()>& work) {
  try {
    const int code = work();
    watchdog.expect("MPI_Finalize", end_limit());
    return code;
  } catch (const PoliteError& error) {
    if (mpi.rank() == 0) std::fprintf(stderr, "lockstep: %s\n", error.what());
    watchdog.expect("MPI_Finalize", end_limit());
    return dynamic_cast<const AgreedFailure*>(&error) != nullptr ? kRunFailed : kWrongInput;
  } catch (const std::exception& error) {
    if (mpi.size() > 1) abort_all(mpi.world(), kRunFailed, error);
    std::fprintf(stderr, "lockstep: %s\n", error.what());
    return kRunFailed;
  }
}

int on_ranks(const std::function<int(const MpiEnvironment&)>& work) {
  keep_large_blocks();
  Watchdog watchdog(name_of_process(launcher_rank(process_environment)), kRunFailed);
  watchdog.expect("MPI_Init", kStartLimit);
  const MpiEnvironment mpi;
  watchdog.rest();
  log::setup(mpi.rank(), mpi.size(), {.quiet = true});
  return tell_failures(
      mpi, watchdog, [] { return kEndLimit; }, [&] { return work(mpi); });
}

}  // namespace lockstep::app

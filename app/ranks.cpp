#include "app/ranks.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "app/commands.h"
#include "comm/abort_all.h"
#include "comm/launcher.h"
#include "comm/malloc_policy.h"
#include "comm/run_agreed.h"
#include "comm/watchdog.h"
#include "core/log.h"

namespace lockstep::app {

// Seconds until all ranks have started, and until they have left.
static constexpr double kStartLimit = 600, kEndLimit = 120;

int on_ranks(const std::function<int(const MpiEnvironment&)>& work) {
  keep_large_blocks();
  const int early_rank = launcher_rank([](const char* name) { return std::getenv(name); });
  Watchdog watchdog(early_rank < 0 ? "lockstep" : fmt::format("rank {}", early_rank), kRunFailed);
  watchdog.expect("MPI_Init", kStartLimit);
  MpiEnvironment mpi;
  watchdog.rest();
  log::setup(mpi.rank(), mpi.size(), {.quiet = true});
  try {
    const int code = work(mpi);
    watchdog.expect("MPI_Finalize", kEndLimit);
    return code;
  } catch (const PoliteError& error) {
    if (mpi.rank() == 0) std::fprintf(stderr, "lockstep: %s\n", error.what());
    watchdog.expect("MPI_Finalize", kEndLimit);
    return dynamic_cast<const AgreedFailure*>(&error) != nullptr ? kRunFailed : kWrongInput;
  } catch (const std::exception& error) {
    if (mpi.size() > 1) abort_all(mpi.world(), kRunFailed, error);
    std::fprintf(stderr, "lockstep: %s\n", error.what());
    return kRunFailed;
  }
}

}  // namespace lockstep::app

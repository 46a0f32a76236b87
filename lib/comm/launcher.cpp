#include "comm/launcher.h"

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/whole_number.h"

namespace lockstep {
namespace {

// SLURM_NTASKS is missing on purpose: sbatch sets it for its script too, where one process or an mpirun is right.
constexpr Launcher known[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "the program is linked to another MPI: start with that MPI's mpirun"},
    {"MVAPICH's mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK",
     "the program is linked to another MPI: start with that MPI's mpirun"},
    {"the PMI launcher (mpiexec, srun --mpi=pmi2)", "PMI_SIZE", "PMI_RANK",
     "the program's MPI does not speak PMI: start with its own mpirun or srun --mpi=pmix"},
    {"the Slurm step", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "start with srun --mpi=pmix"},
};

int number(const char* text) { return whole_number<int>(text).value_or(-1); }

}  // namespace

const char* process_environment(const char* variable) { return std::getenv(variable); }

std::span<const Launcher> launchers() { return known; }

const Launcher* find_launcher(const Environment& environment) {
  for (const Launcher& launcher : known) {
    if (environment(launcher.size) != nullptr && environment(launcher.rank) != nullptr) return &launcher;
  }
  return nullptr;
}

int launcher_rank(const Environment& environment) {
  const Launcher* launcher = find_launcher(environment);
  return launcher == nullptr ? -1 : number(environment(launcher->rank));
}

std::string launch_mismatch(const Environment& environment, int mpi_size) {
  const Launcher* launcher = find_launcher(environment);
  if (launcher == nullptr) return "";
  const int expected = number(environment(launcher->size));
  // More ranks than tasks is right: a heterogeneous Slurm job is one MPI world of several steps.
  if (expected <= mpi_size) return "";
  return fmt::format("MPI size is {} but {} has {} tasks: {}", mpi_size, launcher->name, expected, launcher->cure);
}

std::string missing_pmi(const Environment& environment) {
  const Launcher* launcher = find_launcher(environment);
  if (launcher == nullptr || launcher->size != std::string_view("SLURM_STEP_NUM_TASKS")) return "";
  const int tasks = number(environment(launcher->size));
  if (tasks < 2) return "";
  for (const char* variable : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD", "PMI2_FD"})
    if (environment(variable) != nullptr) return "";
  return fmt::format("the Slurm step has {} tasks and offers them no PMI; if MPI ends the program here: {}", tasks,
                     launcher->cure);
}

}  // namespace lockstep

#include "comm/cores.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <thread>

#include "comm/mpi/mpi_call.h"
#include "core/error.h"

namespace lockstep {

std::vector<unsigned long> allowed_cpus() {
  // The kernel refuses a mask shorter than its own, so grow until it fits: 1,024 CPUs, 2,048, ...
  for (size_t words = 16; words <= 1024; words *= 2) {
    std::vector<unsigned long> mask(words, 0);
    if (sched_getaffinity(0, words * sizeof(unsigned long), reinterpret_cast<cpu_set_t*>(mask.data())) == 0)
      return mask;
    if (errno != EINVAL) break;
  }
  std::vector<unsigned long> mask(16, 0);
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, 1024u);
  for (unsigned cpu = 0; cpu < cores; ++cpu) mask[cpu / 64] |= 1ul << (cpu % 64);
  return mask;
}

int count_cpus(const std::vector<unsigned long>& mask) {
  int count = 0;
  for (const unsigned long word : mask) count += std::popcount(word);
  return count;
}

int allowed_cores_of_node(MPI_Comm node) {
  std::vector<unsigned long> mask = allowed_cpus();
  int words = static_cast<int>(mask.size());
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, &words, 1, MPI_INT, MPI_MAX, node), "MPI_Allreduce");
  mask.resize(static_cast<size_t>(words), 0);
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, mask.data(), words, MPI_UNSIGNED_LONG, MPI_BOR, node), "MPI_Allreduce");
  return std::max(1, count_cpus(mask));
}

std::string thread_shortage(int threads, int own_cores, int local_size, int node_cores) {
  constexpr const char* cure =
      "device.threads: 0 takes what there is; more cores come with srun --cpus-per-task=N, sbatch --cpus-per-task=N "
      "and SRUN_CPUS_PER_TASK=N, or mpirun --bind-to none";
  if (threads > own_cores)
    return fmt::format("device.threads is {}, but this rank is bound to {} core(s): {}", threads, own_cores, cure);
  if (threads * local_size > node_cores)
    return fmt::format("device.threads is {} for each of {} ranks, but they share {} core(s): {}", threads, local_size,
                       node_cores, cure);
  return "";
}

int threads_per_rank(int allowed_cores, int local_size) { return std::max(1, allowed_cores / std::max(1, local_size)); }

}  // namespace lockstep

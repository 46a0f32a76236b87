// All-reduce by size: this library's communicators beside MPI_Allreduce in the same run, with a gradient rewritten
// before every call. mpirun -np 2 bench_allreduce [rounds]
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "comm/factory.h"
#include "comm/malloc_policy.h"

using namespace lockstep;

namespace {

// Median over the calls of the slowest rank's microseconds.
double median_us(const MpiEnvironment& env, std::span<float> values, int calls, const std::function<void()>& reduce) {
  std::vector<double> times;
  for (int call = 0; call < calls + 3; ++call) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(env.rank() + call) + 1e-3f * static_cast<float>(i & 1023);
    MPI_Barrier(env.world());
    const double start = MPI_Wtime();
    reduce();
    double us = (MPI_Wtime() - start) * 1e6;
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, env.world());
    if (call >= 3) times.push_back(us);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  keep_large_blocks();
  const MpiEnvironment env;
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 3;
  const auto shm = make_communicator("shm", env, 60, nullptr);
  const auto mpi = make_communicator("mpi", env, 60, nullptr);
  if (env.rank() == 0)
    std::printf("%d ranks, median us\n%12s %12s %12s %12s %12s\n", env.size(), "bytes", "MPI_Allreduce", "mpi", "shm",
                "shm private");
  for (const size_t bytes :
       {256, 1000, 2000, 3008, 8192, 16384, 32768, 65536, 1 << 20, 4'800'000, 25'000'000, 100'000'000}) {
    const Buffer window = shm->allocate(bytes), heap = Buffer::host(bytes);
    const auto shared = window.as<float>(), own = heap.as<float>();
    const int count = static_cast<int>(own.size());
    const int calls = bytes <= 65536 ? 1000 : bytes <= 5'000'000 ? 100 : 9;
    for (int round = 0; round < rounds; ++round) {
      const double plain = median_us(
          env, own, calls, [&] { MPI_Allreduce(MPI_IN_PLACE, own.data(), count, MPI_FLOAT, MPI_SUM, env.world()); });
      const double ours = median_us(env, own, calls, [&] { mpi->all_reduce_sum(own); });
      const double direct = median_us(env, shared, calls, [&] { shm->all_reduce_sum(shared); });
      const double copied = median_us(env, own, calls, [&] { shm->all_reduce_sum(own); });
      if (env.rank() == 0) std::printf("%12zu %12.1f %12.1f %12.1f %12.1f\n", bytes, plain, ours, direct, copied);
    }
  }
  return 0;
}

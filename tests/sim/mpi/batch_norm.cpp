// ranks: 1 2 4
// links: dist
// Batch normalisation over ranks on the simulated GPU beside the CPU's: unequal shares, and ranks without samples.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "backend/cpu/cpu_plans.h"
#include "backend/cuda/cuda_plans.h"
#include "comm/factory.h"
#include "core/error.h"
#include "dist/batch_norm_sync.h"
#include "sim/gpu_arrays.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using test::differs;
using test::GpuArrays;

namespace {

constexpr int64_t channels = 6;
constexpr size_t c = channels;
constexpr double rel = 5e-7, abs_ = 1e-6;  // as in tests/sim/norms.cpp

// Three steps, of which the middle one finds a rank without samples where `empty` says so.
void run(Communicator& comm, int64_t images, bool empty) {
  CommunicatorReducer reducer(comm);
  const BatchNormSpec spec{.input = {.shape = Shape{images, channels, 3, 5}, .channel_block = channels},
                           .momentum = std::nullopt,
                           .across_ranks = &reducer};
  GpuArrays gpu(static_cast<uint64_t>(comm.rank()) + 3);
  const auto cpu = make_cpu_batch_norm(spec);
  const auto plan = cuda::make_batch_norm(gpu.context(), spec);
  const auto n = static_cast<size_t>(images * channels * 15);
  const auto seed = static_cast<uint32_t>(comm.rank());
  const std::vector<float> x = oracle::random_floats(n, seed, 3, 8), dy = oracle::random_floats(n, seed + 50),
                           w = oracle::random_floats(c, 99);
  std::vector<float> y(n), dx(n), dw(c), db(c), running(2 * c + 1, 1);
  std::vector<double> saved(cpu->saved_bytes() / 8);
  float *gx = gpu.put(x), *gdy = gpu.put(dy), *gw = gpu.put(w), *gy = gpu.floats(n), *gdx = gpu.floats(n),
        *gdw = gpu.floats(c), *gdb = gpu.floats(c), *grunning = gpu.put(running);
  void* gsaved = gpu.make(plan->saved_bytes());
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    if (empty && step == 1) {
      cpu->forward_empty(running.data(), running.data() + c, running.data() + 2 * c);
      plan->forward_empty(grunning, grunning + c, grunning + 2 * c);
      cpu->backward_empty();
      plan->backward_empty();
      continue;
    }
    cpu->forward(x.data(), w.data(), w.data(), running.data(), running.data() + c, running.data() + 2 * c, y.data(),
                 saved.data());
    plan->forward(gx, gw, gw, grunning, grunning + c, grunning + 2 * c, gy, gsaved);
    cpu->backward(x.data(), dy.data(), w.data(), dx.data(), dw.data(), db.data(), step > 0, saved.data(), nullptr);
    plan->backward(gx, gdy, gw, gdx, gdw, gdb, step > 0, gsaved, nullptr);
    CHECK_EQ(differs(gpu.get(gy, n), y, rel, abs_), "");
    CHECK_EQ(differs(gpu.get(gdx, n), dx, rel, abs_), "");
  }
  CHECK_EQ(differs(gpu.get(grunning, 2 * c + 1), running, rel, 0), "");
  CHECK_EQ(differs(gpu.get(gdw, c), dw, rel, abs_), "");
  CHECK_EQ(differs(gpu.get(gdb, c), db, rel, abs_), "");
}

}  // namespace

TEST_CASE("batch norm over ranks on the GPU is that of the CPU") {
  const MpiEnvironment env;
  const auto comm = make_communicator("mpi", env, 60, nullptr);
  run(*comm, 2 + comm->rank(), false);
}

TEST_CASE("a rank without samples takes its part in batch norm on the GPU") {
  const MpiEnvironment env;
  const auto comm = make_communicator("mpi", env, 60, nullptr);
  if (comm->size() == 1) return;
  run(*comm, 3, comm->rank() == comm->size() - 1);
  run(*comm, 3, comm->rank() == 0);
}

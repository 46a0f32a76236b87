// ranks: 1 2 4
// links: comm
// Which GPU a rank really gets, through MPI and what CUDA shows it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "backend/cuda/context.h"
#include "comm/gpu_communicator.h"
#include "comm/gpu_placement.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/run_agreed.h"
#include "sim/runtime/control.h"

using namespace lockstep;

namespace {

// The index, or what all ranks are told.
std::string taken(const MpiEnvironment& env, bool oversubscribe) {
  MpiCommunicator ranks(env.world(), {.timeout_seconds = 20});
  int index = -1;
  try {
    run_agreed(ranks, [&] { index = take_gpu(ranks, env, oversubscribe); });
  } catch (const PoliteError& error) {
    return error.what();
  }
  return std::to_string(index);
}

void show(const std::string& list) { setenv("CUDA_VISIBLE_DEVICES", list.c_str(), 1); }

}  // namespace

TEST_CASE("every rank takes the GPU of its place in the node") {
  const MpiEnvironment env;
  sim::reset({.gpus = 4});
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(taken(env, false) == std::to_string(env.rank()));
  show("3,2,1,0");
  CHECK(taken(env, false) == std::to_string(env.rank()));
  show(std::to_string(env.rank()));  // srun --gpus-per-task=1
  CHECK(taken(env, false) == "0");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("ranks without a GPU of their own are named on all ranks alike") {
  const MpiEnvironment env;
  sim::reset({.gpus = 1});
  unsetenv("CUDA_VISIBLE_DEVICES");
  if (env.size() > 1) {
    const std::string told = taken(env, false);
    CAPTURE(told);
    CHECK(told.find("rank 1: device.kind cuda: ") == 0);
    CHECK(told.find("local rank 1 sees 1 GPU(s)") != std::string::npos);
    CHECK(taken(env, true) == "0");
  }
  sim::reset({.gpus = 4});
  show("");
  CHECK(taken(env, false) ==
        "device.kind cuda: no CUDA-capable device is detected: CUDA_VISIBLE_DEVICES= shows none of this machine's; "
        "device.kind auto takes the CPU where there is no GPU");
  sim::reset({.gpus = 0});
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(taken(env, false) ==
        "device.kind cuda: this machine has no NVIDIA driver; device.kind auto takes the CPU where there is no GPU");
}

TEST_CASE("NCCL is chosen where every rank has a GPU and the host where ranks share one") {
  const MpiEnvironment env;
  unsetenv("CUDA_VISIBLE_DEVICES");
  setenv("NCCL_IGNORED_HERE", "7", 1);
  std::string why;
  {
    sim::reset({.gpus = 4});
    cuda::Context context(env.rank());
    CHECK(make_gpu_communicator("auto", env, context, 20, why)->name() == "nccl");
    CHECK(why.find("every rank has a GPU of its own; NCCL 2.") == 0);
    CHECK(why.find(", NCCL_IGNORED_HERE=7") != std::string::npos);
    CHECK(make_gpu_communicator("nccl", env, context, 20, why)->name() == "nccl");
    CHECK(make_gpu_communicator("mpi", env, context, 20, why)->name() == "staged mpi");
  }
  if (env.size() == 1) return;
  sim::reset({.gpus = 4});
  cuda::Context context(env.rank() == 1 ? 0 : env.rank());
  const auto made = make_gpu_communicator("auto", env, context, 20, why);
  CHECK(made->name() == "staged shm");
  CHECK(why.find("ranks 0 and 1 hold the same GPU, simulated GPU (0000:01:00.0 on ") == 0);
  CHECK_THROWS_AS(make_gpu_communicator("nccl", env, context, 20, why), PoliteError);
}

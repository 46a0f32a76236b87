// What a rank of a test trains on: the CPU and its communicators, or, where the environment says
// LOCKSTEP_TEST_DEVICE=cuda, a GPU of its own of those that the program is linked with.
#pragma once

#include <memory>
#include <string>

#include "comm/factory.h"
#include "comm/gpu_communicator.h"
#include "comm/mpi_env.h"
#include "support/test_backend.h"

namespace lockstep::test {

class RankDevice {
 public:
  // kind: auto or mpi, as in comm/factory.h; on GPUs NCCL, or mpi by way of the host.
  RankDevice(const MpiEnvironment& env, const std::string& kind) {
    if (!on_gpu()) {
      backend_ = make_cpu_backend({.threads = 1});
      comm_ = make_communicator(kind, env, 60, nullptr);
      return;
    }
    std::string why;
    backend_ = make_cuda_backend({.index = env.rank()});
    comm_ = make_gpu_communicator(kind, env, *backend_->gpu(), 60, why);
  }
  Backend& backend() { return *backend_; }
  Communicator& comm() { return *comm_; }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Communicator> comm_;  // goes first
};

}  // namespace lockstep::test

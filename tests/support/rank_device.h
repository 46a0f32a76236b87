// What a rank of a test trains on: the CPU and its communicators, or, where the environment says
// LOCKSTEP_TEST_DEVICE=cuda, a GPU of its own of those that the program is linked with.
#pragma once

#include <memory>
#include <string>

#include "comm/factory.h"
#include "comm/gpu_communicator.h"
#include "comm/mpi_env.h"
#include "comm/serial_communicator.h"
#include "support/test_backend.h"

namespace lockstep::test {

class RankDevice {
 public:
  // kind: auto or mpi, as in comm/factory.h; on GPUs NCCL, or mpi by way of the host.
  // host_sums: why NCCL will not do, as in comm/gpu_communicator.h.
  RankDevice(const MpiEnvironment& env, const std::string& kind, const std::string& host_sums = "") {
    if (!on_gpu()) {
      backend_ = make_cpu_backend({.threads = 1});
      comm_ = make_communicator(kind, env, 60, nullptr);
      return;
    }
    std::string why;
    backend_ = make_cuda_backend({.index = env.rank()});
    comm_ = make_gpu_communicator(kind, env, *backend_->gpu(), 60, why, host_sums);
  }
  Backend& backend() { return *backend_; }
  Communicator& comm() { return *comm_; }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Communicator> comm_;  // goes first
};

// The communicator of one rank alone, for oracles: gradients lie where its backend computes.
class Alone final : public Communicator {
 public:
  explicit Alone(Backend& backend) : backend_(backend) {}
  std::string_view name() const override { return serial_.name(); }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Buffer allocate(size_t bytes) override { return backend_.allocate(bytes); }
  void all_reduce_sum(std::span<float>) override {}
  void all_reduce(std::span<double>, ReduceOp) override {}
  void broadcast(std::span<std::byte>, int) override {}
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return serial_.all_gather(mine);
  }
  void barrier() override {}

 private:
  Backend& backend_;
  SerialCommunicator serial_;
};

}  // namespace lockstep::test

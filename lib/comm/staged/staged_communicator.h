// Sums of gradients that lie on GPUs, made on the host by another communicator: for ranks that share a GPU, which NCCL
// refuses, for builds without NCCL, and where sums must have the bits of comm/sum_tree.h. Each bucket is copied to the
// host beside what is computed; the host waits for the copies when all sums are asked for. MPI never sees a device
// pointer.
//
// all_reduce_sum, start_sum: device memory from allocate(). broadcast, all_gather, all_reduce of doubles: host memory.
#pragma once

#include <memory>
#include <vector>

#include "backend/cuda/context.h"
#include "comm/communicator.h"

namespace lockstep {

class StagedCommunicator final : public Communicator {
 public:
  // context: of this rank's GPU, outlives this object.
  StagedCommunicator(std::unique_ptr<Communicator> host, cuda::Context& context);

  std::string_view name() const override { return name_; }  // "staged shm"
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  Buffer allocate(size_t bytes) override;  // zeroed device memory
  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_in(WireFormat::fp32, values); }
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override;
  void start_sum(std::span<float> values) override { start_sum_in(WireFormat::fp32, values); }
  void start_sum_in(WireFormat wire, std::span<float> values) override;
  // What the compute stream does next has the sums.
  void finish_sums() override;

  void all_reduce(std::span<double> values, ReduceOp op) override { host_->all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { host_->broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return host_->all_gather(mine);
  }
  void barrier() override { host_->barrier(); }

 private:
  struct Arena {
    std::byte* device;
    Buffer host;        // of the host communicator, where its sums cost least
    Buffer registered;  // releases the registration, before the memory goes
  };
  struct Sum {
    cuda::Event copied;
    WireFormat wire = WireFormat::fp32;
    std::span<float> device, host;
    uint64_t activity = 0;
  };
  std::span<float> staging_of(std::span<float> device) const;

  std::unique_ptr<Communicator> host_;
  cuda::Context& context_;
  std::string name_;
  std::vector<Arena> arenas_;
  cuda::Event ready_, back_;
  std::vector<Sum> sums_;  // as many as a group ever had
  size_t in_group_ = 0;    // of them
};

}  // namespace lockstep

// Sums of gradients that lie on the GPUs, made there by NCCL in a stream of its own, beside whatever is computed. The
// host waits for nothing: the compute stream waits for the sums. All other collectives are on host memory and go by
// messages, which also carry the news of a failing rank to those whose GPU would wait for it for ever.
//
// all_reduce_sum, start_sum: device memory, best from allocate(). broadcast, all_gather, all_reduce of doubles: host
// memory. The order of a sum is NCCL's, the same bits on all ranks but not those of comm/sum_tree.h.
#pragma once

#include <optional>
#include <vector>

#include "backend/cuda/context.h"
#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi_env.h"
#include "comm/nccl/nccl_handle.h"

namespace lockstep {

class NcclCommunicator final : public Communicator {
 public:
  // Collective: every rank has a GPU of its own and is in its `context`, which outlives this object.
  NcclCommunicator(const MpiEnvironment& environment, cuda::Context& context, double timeout_seconds);
  ~NcclCommunicator() override;

  std::string_view name() const override { return "nccl"; }
  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  // Zeroed device memory, registered with NCCL where it can be on all ranks.
  Buffer allocate(size_t bytes) override;
  // These return when the sum is queued: what the compute stream does next has it.
  void all_reduce_sum(std::span<float> values) override;
  void all_reduce_sum_in(WireFormat wire, std::span<float> values) override;
  void start_sum(std::span<float> values) override;
  void start_sum_in(WireFormat wire, std::span<float> values) override;
  void poll_sums() override { check(); }
  void finish_sums() override;
  bool sums_are_queued() const override { return true; }
  void give_up() noexcept override { nccl_.abort(); }

  void all_reduce(std::span<double> values, ReduceOp op) override { host_.all_reduce(values, op); }
  void broadcast(std::span<std::byte> bytes, int root) override { host_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return host_.all_gather(mine);
  }
  void barrier() override { host_.barrier(); }

 private:
  struct Sum {  // in flight
    cuda::Event done;
    uint64_t activity = 0;
    bool recorded = false;  // in a recording: nobody can ask for its event
  };
  void agree(std::span<const float> values);
  void check();
  void watch(double seconds);
  std::string unfinished() const;
  [[noreturn]] void fail(const std::string& reason);

  cuda::Context& context_;
  double timeout_seconds_;
  MpiCommunicator host_;
  cuda::Stream stream_;
  cuda::Event ready_;
  nccl::Handle nccl_;
  std::vector<Sum> sums_;                                // of the last group; as many as a group ever had
  size_t in_group_ = 0;                                  // of them
  std::vector<std::pair<const float*, size_t>> agreed_;  // arrays whose sum all ranks are known to make alike
  const std::byte* arena_ = nullptr;                     // the last allocate()d, where positions are told from
};

}  // namespace lockstep

#include "comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/cuda_check.h"
#include "comm/nccl_facts.h"

namespace lockstep {

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::unique_ptr<Communicator> make_nccl_communicator(const MpiEnvironment& environment, cuda::Context& context,
                                                     double timeout_seconds) {
  return std::make_unique<NcclCommunicator>(environment, context, timeout_seconds);
}

NcclCommunicator::NcclCommunicator(const MpiEnvironment& environment, cuda::Context& context, double timeout_seconds)
    : context_(context),
      timeout_seconds_(timeout_seconds),
      host_(environment.world(), {.timeout_seconds = timeout_seconds, .activity = &activity()}) {
  ncclUniqueId id{};
  if (rank() == 0) nccl::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  host_.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  nccl_.start(size(), id, rank(), [&](double seconds) {
    host_.check_peers();
    if (seconds > activity().limit(timeout_seconds_))
      throw PeerFailure(fmt::format("waited {:g} s for NCCL to connect {} ranks: {} did not come", seconds, size(),
                                    host_.missing_ranks()));
  });
  context_.set_watch([this](double seconds) { watch(seconds); });
}

NcclCommunicator::~NcclCommunicator() { context_.set_watch({}); }

Buffer NcclCommunicator::allocate(size_t bytes) {
  if (bytes == 0) return {};
  void* memory = nullptr;
  nccl::check(ncclMemAlloc(&memory, bytes), "ncclMemAlloc");
  Buffer buffer(memory, bytes, [](void* freed) { ncclMemFree(freed); });
  context_.fill_zero(context_.compute(), memory, bytes);
  context_.synchronize(context_.compute());
  void* registration = nullptr;
  const ncclResult_t registered = ncclCommRegister(nccl_.get(), memory, bytes, &registration);
  // NCCL wants all ranks to register or none.
  double all = registered == ncclSuccess && registration != nullptr ? 1 : 0;
  host_.all_reduce({&all, 1}, ReduceOp::min);
  if (all == 0 && registration != nullptr) ncclCommDeregister(nccl_.get(), registration);
  arena_ = static_cast<const std::byte*>(memory);
  return buffer;  // what stays registered goes with the communicator
}

void NcclCommunicator::all_reduce_sum(std::span<float> values) {
  start_sum(values);
  finish_sums();
}

void NcclCommunicator::all_reduce_sum_in(WireFormat wire, std::span<float> values) {
  start_sum_in(wire, values);
  finish_sums();
}

void NcclCommunicator::start_sum_in(WireFormat wire, std::span<float> values) {
  if (wire != WireFormat::fp32)
    throw_error("distributed.compress: NCCL would also add in 16 bits; write compress: none, or another backend");
  start_sum(values);
}

void NcclCommunicator::start_sum(std::span<float> values) {
  if (values.empty()) return;
  check();
  agree(values);
  if (in_group_ == sums_.size()) sums_.emplace_back();
  Sum& sum = sums_[in_group_++];
  sum.activity = activity().word();
  sum.recorded = context_.values().mode() == cuda::StepValues::Mode::recording;
  context_.compute().record(ready_);
  stream_.wait(ready_);
  nccl::check(
      ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat, ncclSum, nccl_.get(), stream_.get()),
      "ncclAllReduce", nccl_.get());
  nccl_.settle([this](double seconds) { watch(seconds); });
  stream_.record(sum.done);
}

void NcclCommunicator::finish_sums() {
  if (in_group_ == 0) return;
  context_.compute().wait(sums_[in_group_ - 1].done);
  in_group_ = 0;
  check();
}

// NCCL does not notice ranks that sum different arrays: they hang, or add what does not belong together. Each array is
// compared over the ranks when it is summed for the first time.
void NcclCommunicator::agree(std::span<const float> values) {
  const std::pair key{values.data(), values.size()};
  if (std::ranges::find(agreed_, key) != agreed_.end()) return;
  const auto* place = reinterpret_cast<const std::byte*>(values.data());
  host_.meet(Collective::all_reduce_sum, values.size(), static_cast<uint64_t>(place - arena_));
  agreed_.push_back(key);
}

void NcclCommunicator::check() {
  if (!nccl_.running()) throw PeerFailure("a sum after NCCL was given up");
  try {
    nccl_.check_async();
  } catch (const Error& error) {
    fail(error.what());
  }
}

void NcclCommunicator::watch(double seconds) {
  if (!nccl_.running()) return;
  check();
  try {
    host_.check_peers();
  } catch (const PeerFailure& failure) {
    nccl_.abort();
    throw PeerFailure(fmt::format("{} in {}", failure.what(), unfinished()));
  }
  if (seconds < activity().limit(timeout_seconds_)) return;
  fail(fmt::format("waited {:g} s in {} for {}", seconds, unfinished(), host_.missing_ranks()));
}

// "all_reduce_sum (step 3, bucket 1 from 4.weight)": the first sum that is not done. Of a recorded step only the whole
// is known.
std::string NcclCommunicator::unfinished() const {
  for (const Sum& sum : sums_) {
    if (sum.recorded)
      return fmt::format("a recorded step with {} sums ({})", sums_.size(), activity().describe(activity().word()));
    if (cudaEventQuery(sum.done.get()) != cudaErrorNotReady) continue;
    const std::string when = activity().describe(sum.activity);
    return "all_reduce_sum" + (when.empty() ? "" : " (" + when + ")");
  }
  return "work on the GPU";
}

// Frees the GPU of kernels that wait for other ranks, so that this process can end.
void NcclCommunicator::fail(const std::string& reason) {
  nccl_.abort();
  throw PeerFailure(reason);
}

}  // namespace lockstep

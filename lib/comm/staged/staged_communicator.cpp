#include "comm/staged/staged_communicator.h"

#include "core/error.h"

namespace lockstep {

StagedCommunicator::StagedCommunicator(std::unique_ptr<Communicator> host, cuda::Context& context)
    : host_(std::move(host)), context_(context), name_("staged " + std::string(host_->name())) {}

Buffer StagedCommunicator::allocate(size_t bytes) {
  if (bytes == 0) return {};
  Buffer device = context_.allocate(bytes);
  Buffer host = host_->allocate(bytes);
  Buffer registered = context_.pin(host);
  arenas_.push_back({static_cast<std::byte*>(device.data()), std::move(host), std::move(registered)});
  return device;
}

std::span<float> StagedCommunicator::staging_of(std::span<float> device) const {
  auto* first = reinterpret_cast<std::byte*>(device.data());
  for (const Arena& arena : arenas_) {
    if (first < arena.device || first + device.size_bytes() > arena.device + arena.host.bytes()) continue;
    const auto offset = static_cast<size_t>(first - arena.device) / sizeof(float);
    return arena.host.as<float>().subspan(offset, device.size());
  }
  throw_error("a sum of device memory that the communicator did not allocate");
}

void StagedCommunicator::all_reduce_sum_in(WireFormat wire, std::span<float> values) {
  start_sum_in(wire, values);
  finish_sums();
}

void StagedCommunicator::start_sum_in(WireFormat wire, std::span<float> values) {
  if (values.empty()) return;
  const std::span<float> staging = staging_of(values);
  if (in_group_ == sums_.size()) sums_.emplace_back();
  Sum& sum = sums_[in_group_++];
  sum.wire = wire, sum.device = values, sum.host = staging, sum.activity = activity().word();
  context_.compute().record(ready_);
  context_.copies().wait(ready_);
  context_.to_host(context_.copies(), staging.data(), values.data(), values.size_bytes());
  context_.copies().record(sum.copied);
}

// One after another: while a sum is made, the copies of the next ones go on.
void StagedCommunicator::finish_sums() {
  if (in_group_ == 0) return;
  for (size_t i = 0; i < in_group_; ++i) {
    const Sum& sum = sums_[i];
    context_.wait(sum.copied);
    host_->activity().set_word(sum.activity);
    if (sum_watch() != nullptr) sum_watch()->sum_begins();
    host_->all_reduce_sum_in(sum.wire, sum.host);
    if (sum_watch() != nullptr) sum_watch()->sum_ends();
    context_.to_device(context_.copies(), sum.device.data(), sum.host.data(), sum.host.size_bytes());
  }
  context_.copies().record(back_);
  context_.compute().wait(back_);
  in_group_ = 0;
  host_->activity().set_word(activity().word());
}

}  // namespace lockstep

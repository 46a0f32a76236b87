#include "comm/shm/shm_communicator.h"

#include <algorithm>
#include <exception>

#include "comm/run_agreed.h"
#include "core/log.h"

namespace lockstep {
namespace {

// Bytes of the control segment per rank: it is one block, divided by SharedReduction itself.
size_t control_bytes_per_rank(int size) {
  const size_t ranks = static_cast<size_t>(size);
  return (SharedReduction::memory_bytes(size) + ranks - 1) / ranks;
}

WaitPolicy watched(WaitPolicy policy, const Activity& activity) {
  if (policy.activity == nullptr) policy.activity = &activity;
  return policy;
}

}  // namespace

ShmCommunicator::ShmCommunicator(MPI_Comm node, const ShmOptions& options)
    : node_(mpi::OwnedComm::duplicate(node)),
      rank_(mpi::rank(node)),
      size_(mpi::size(node)),
      options_(options),
      exceptions_(std::uncaught_exceptions()),
      control_(node_.get(), control_bytes_per_rank(size_)),
      reduction_(control_.data(), rank_, size_, watched(options.wait, activity()), options.beyond),
      windows_(std::make_shared<std::vector<SharedWindow>>()),
      shards_(reduction_.meeting(), [this](std::span<const float> values) { return window_of(values); }) {}

ShmCommunicator::~ShmCommunicator() {
  if (std::uncaught_exceptions() > exceptions_)
    reduction_.abort((options_.wait.activity == nullptr ? activity() : *options_.wait.activity).stopped());
}

Buffer ShmCommunicator::allocate(size_t bytes) {
  const auto asked = reduction_.all_gather(std::as_bytes(std::span(&bytes, 1)));
  if (std::any_of(asked.begin(), asked.end(), [&](const auto& theirs) { return theirs != asked.front(); }))
    throw_error("allocate: ranks ask for different sizes, this one for {} bytes", bytes);
  if (bytes == 0) return {};
  ++windows_made_;
  std::shared_ptr<SharedSegment> segment;
  try {
    segment = std::make_shared<SharedSegment>(node_.get(), bytes);
  } catch (const PoliteError& error) {
    if (!options_.private_memory_if_full) throw;
    if (rank_ == 0) log::warning("{}; each rank has this memory to itself instead, which costs time", error.what());
    return Buffer::host(bytes);
  }
  SharedWindow window{{}, bytes, windows_made_};
  for (int r = 0; r < size_; ++r) window.copies.push_back(segment->part(r));
  windows_->push_back(std::move(window));
  const auto release = [segment, windows = windows_, id = windows_made_](void*) {
    std::erase_if(*windows, [&](const SharedWindow& known) { return known.id == id; });
  };
  return Buffer(segment->part(rank_), bytes, release);
}

const SharedWindow* ShmCommunicator::window_of(std::span<const float> values) const {
  for (const SharedWindow& window : *windows_)
    if (window.holds(rank_, values)) return &window;
  return nullptr;
}

void ShmCommunicator::all_reduce_sum_in(WireFormat wire, std::span<float> values) {
  if (const SharedWindow* window = window_of(values)) {
    reduction_.all_reduce_sum(*window, window->offset(rank_, values.data()), values.size(), wire);
  } else {
    reduction_.all_reduce_sum(values, wire);
  }
}

// An array in no window is in none on any rank (allocate is collective), so all ranks treat it alike.
void ShmCommunicator::start_sum_in(WireFormat wire, std::span<float> values) {
  if (const SharedWindow* window = window_of(values)) {
    reduction_.background().start(*window, window->offset(rank_, values.data()), values.size(), wire);
  } else {
    defer_sum(wire, values);
  }
}

void ShmCommunicator::finish_sums() {
  reduction_.background().finish();
  Communicator::finish_sums();
}

void ShmCommunicator::watch_sums(SumWatch* watch) {
  Communicator::watch_sums(watch);
  reduction_.background().watch(watch);
}

}  // namespace lockstep

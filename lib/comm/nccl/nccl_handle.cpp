#include "comm/nccl/nccl_handle.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "core/error.h"

namespace lockstep::nccl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto longest_end = std::chrono::seconds(10), longest_abort = std::chrono::seconds(5);

}  // namespace

void check(ncclResult_t code, const char* call, ncclComm_t comm) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  const char* detail = ncclGetLastError(comm);
  throw_error("{} failed: {}{}", call, ncclGetErrorString(code),
              detail == nullptr || *detail == 0 ? "" : fmt::format(" ({})", detail));
}

void Handle::start(int ranks, const ncclUniqueId& id, int rank, const Watch& watch) {
  exceptions_ = std::uncaught_exceptions();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(ncclCommInitRankConfig(&comm_, ranks, id, rank, &config), "ncclCommInitRankConfig", comm_);
  settle(watch);
}

Handle::~Handle() {
  if (comm_ == nullptr) return;
  if (std::uncaught_exceptions() > exceptions_ || !finalized()) {
    abort();
  } else {
    ncclCommDestroy(comm_);
  }
}

// The other ranks come to this, too: until then their kernels may use memory of this one.
bool Handle::finalized() const noexcept {
  const ncclResult_t begun = ncclCommFinalize(comm_);
  if (begun != ncclSuccess && begun != ncclInProgress) return false;
  const auto end = Clock::now() + longest_end;
  ncclResult_t state = ncclInProgress;
  while (ncclCommGetAsyncError(comm_, &state) == ncclSuccess && state == ncclInProgress && Clock::now() < end)
    sched_yield();
  return state == ncclSuccess;
}

void Handle::settle(const Watch& watch) const {
  const auto start = Clock::now();
  ncclResult_t state = ncclInProgress;
  while (true) {
    check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
    if (state != ncclInProgress) break;
    watch(std::chrono::duration<double>(Clock::now() - start).count());
    sched_yield();
  }
  check(state, "NCCL", comm_);
}

void Handle::check_async() const {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
  check(state, "NCCL", comm_);
}

// In a thread of its own, because ncclCommAbort has been seen to hang; the process is about to end anyway.
void Handle::abort() noexcept {
  if (comm_ == nullptr) return;
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  auto done = std::make_shared<std::atomic<bool>>(false);
  try {
    std::thread([comm, done] {
      ncclCommAbort(comm);
      *done = true;
    }).detach();
  } catch (const std::exception&) {  // no thread to be had
    ncclCommAbort(comm);
    return;
  }
  const auto end = Clock::now() + longest_abort;
  while (!*done && Clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

}  // namespace lockstep::nccl

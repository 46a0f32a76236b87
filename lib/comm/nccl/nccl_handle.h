// NCCL's communicator, owned: begun without blocking, watched, and ended so that no rank hangs because another is gone.
#pragma once

#include <nccl.h>

#include <functional>

namespace lockstep::nccl {

// Throws Error "ncclAllReduce failed: unhandled system error (...)" unless code is ncclSuccess or ncclInProgress.
void check(ncclResult_t code, const char* call, ncclComm_t comm = nullptr);

class Handle {
 public:
  // Called again and again while waiting, with the seconds so far; throws to end the wait.
  using Watch = std::function<void(double seconds)>;

  Handle() = default;
  // Joins the ranks that hold the same id; returns when all have come.
  void start(int ranks, const ncclUniqueId& id, int rank, const Watch& watch);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  ncclComm_t get() const { return comm_; }
  bool running() const { return comm_ != nullptr; }
  // Waits until the last call has been taken up, which a communicator without blocking may do later.
  void settle(const Watch& watch) const;
  void check_async() const;  // throws Error for what went wrong in the meantime
  // Ends everything on this rank, kernels that wait for other ranks too; the handle is empty afterwards. Returns within
  // seconds even where NCCL itself hangs.
  void abort() noexcept;

 private:
  bool finalized() const noexcept;

  ncclComm_t comm_ = nullptr;
  int exceptions_ = 0;
};

}  // namespace lockstep::nccl

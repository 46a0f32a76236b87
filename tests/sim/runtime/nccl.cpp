// NCCL's functions: without blocking, in stream order, and only between processes of one machine. Sums have the bits of
// comm/sum_tree.h, which the real ones don't.
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/sum_tree.h"
#include "sim/runtime/board.h"
#include "sim/runtime/calls.h"
#include "sim/runtime/device_memory.h"
#include "sim/runtime/scheduler.h"

using namespace lockstep::sim;

struct ncclComm {
  std::shared_ptr<Board> board;
  int ranks = 1, rank = 0;
  uint64_t sequence = 0;
  bool joined = false, finalizing = false;
  std::atomic<ncclResult_t> failure{ncclSuccess};
  std::string error, operation;  // the name of its collectives in a stream
  std::set<void*> registered;
};

namespace {

ncclResult_t wrong(const char* function, const std::string& what, ncclComm_t comm, ncclResult_t code) {
  misuse(function, what);
  if (comm != nullptr) comm->error = what;
  return code;
}

// One collective at the head of a stream: posts, waits for the others, adds up.
class AllReduce {
 public:
  AllReduce(ncclComm_t comm, const float* from, float* to, Claim claim)
      : comm_(comm), board_(comm->board), from_(from), to_(to), claim_(claim), ranks_(comm->ranks) {}

  bool operator()() {
    if (is_silent()) return false;
    if (claim_.sequence == 0) claim_.sequence = ++comm_->sequence;  // in stream order, which is one order on every rank
    if (!posted_) posted_ = board_->post(claim_, from_, claim_.count * sizeof(float));
    if (!posted_ || !board_->all_posted(claim_.sequence)) return false;
    if (!board_->alike(claim_)) {  // the real one hangs, or adds up what does not belong together
      wrong("ncclAllReduce", "the ranks sum different arrays", comm_, ncclInternalError);
      comm_->failure = ncclInternalError;
      return false;
    }
    const auto term = [&](int rank, size_t i) {
      float value = 0;
      std::memcpy(&value, board_->data(claim_.sequence, rank) + i * sizeof(float), sizeof(value));
      return value;
    };
    for (size_t i = 0; i < claim_.count; ++i)
      to_[i] = lockstep::tree_sum(ranks_, [&](int rank) { return term(rank, i); });
    board_->done_reading(claim_.sequence);
    return true;
  }

 private:
  ncclComm_t comm_;
  std::shared_ptr<Board> board_;
  const float* from_;
  float* to_;
  Claim claim_;
  int ranks_;
  bool posted_ = false;
};

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclSuccess: return "no error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclInternalError: return "internal error";
    case ncclSystemError: return "unhandled system error";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t comm) { return comm == nullptr ? "" : comm->error.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int ids = 0;
  if (call_fails("ncclGetUniqueId")) return ncclSystemError;
  const std::string name = "/lockstep-sim-" + std::to_string(getpid()) + "-" + std::to_string(ids++);
  Board::create(name);
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->internal, name.c_str(), name.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (call_fails("ncclCommInitRankConfig")) {
    if (rank == 0) Board::discard(id.internal);
    return ncclSystemError;
  }
  if (config == nullptr || config->blocking != 0 || ranks > Board::most_ranks)
    return wrong("ncclCommInitRankConfig", "only communicators without blocking are simulated", nullptr,
                 ncclInvalidArgument);
  try {
    auto made = std::make_unique<ncclComm>();
    made->board = std::make_shared<Board>(id.internal, ranks, rank);
    made->ranks = ranks, made->rank = rank;
    made->operation = std::string("all_reduce ") + id.internal;
    if (!is_silent()) made->board->join();
    *comm = made.release();
  } catch (const std::exception&) {
    return ncclInvalidArgument;
  }
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (call_fails("ncclCommGetAsyncError")) return ncclSystemError;
  *state = comm->failure;
  if (*state != ncclSuccess) return ncclSuccess;
  comm->joined = comm->joined || comm->board->all_joined();
  const bool ended = !comm->finalizing || comm->board->all_left();
  *state = comm->joined && ended ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (call_fails("ncclCommFinalize")) return ncclSystemError;
  comm->finalizing = true;
  comm->board->leave();
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  call_fails("ncclCommDestroy");
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  call_fails("ncclCommAbort");
  const std::scoped_lock lock(Scheduler::instance().mutex());
  Scheduler::instance().drop(comm->operation);
  comm->board->leave();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (call_fails("ncclMemAlloc")) return ncclSystemError;
  *memory = DeviceMemory::instance().allocate(bytes);
  return *memory == nullptr ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclMemFree(void* memory) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  while (Scheduler::instance().step()) {
  }
  return DeviceMemory::instance().free(memory) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, size_t bytes, void** handle) {
  if (call_fails("ncclCommRegister")) return ncclSystemError;
  if (!DeviceMemory::instance().holds(memory, bytes))
    return wrong("ncclCommRegister", "no device memory", comm, ncclInvalidArgument);
  comm->registered.insert(memory);
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  return comm->registered.erase(handle) == 1 ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  constexpr const char* function = "ncclAllReduce";
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (call_fails(function)) return ncclSystemError;
  const size_t bytes = count * sizeof(float);
  if (type != ncclFloat || operation != ncclSum || bytes > Board::most_bytes)
    return wrong(function, "not simulated", comm, ncclInvalidArgument);
  if (!comm->joined) return wrong(function, "before the ranks are connected", comm, ncclInvalidUsage);
  if (!DeviceMemory::instance().holds(from, bytes) || !DeviceMemory::instance().holds(to, bytes))
    return wrong(function, "no device memory", comm, ncclInvalidArgument);
  const auto number = static_cast<int>(reinterpret_cast<intptr_t>(stream));
  if (!Scheduler::instance().exists(number)) return wrong(function, "no such stream", comm, ncclInvalidArgument);
  const Claim claim{.sequence = 0, .count = count, .type = type, .operation = operation};
  Scheduler::instance().enqueue(number, comm->operation,
                                AllReduce(comm, static_cast<const float*>(from), static_cast<float*>(to), claim));
  return ncclSuccess;
}

}  // extern "C"

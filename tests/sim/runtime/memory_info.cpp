// How much of the simulated GPU's memory is taken, and what was copied there.
#include <cuda_runtime_api.h>

#include <mutex>

#include "sim/runtime/calls.h"
#include "sim/runtime/control.h"
#include "sim/runtime/device_memory.h"
#include "sim/runtime/scheduler.h"

using namespace lockstep::sim;

namespace lockstep::sim {

uint64_t bytes_to_device() {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  return DeviceMemory::instance().copied_in();
}

}  // namespace lockstep::sim

extern "C" cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (call_fails("cudaMemGetInfo")) return cudaErrorUnknown;
  *free = DeviceMemory::instance().free_bytes();
  *all = DeviceMemory::instance().all_bytes();
  return cudaSuccess;
}

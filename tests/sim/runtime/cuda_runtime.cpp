// The CUDA runtime's functions. A thread that calls one before cudaSetDevice gets an error here: with the real library
// it would make a context on GPU 0.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "backend/device_choice.h"
#include "sim/runtime/calls.h"
#include "sim/runtime/device_memory.h"
#include "sim/runtime/kernel.h"
#include "sim/runtime/scheduler.h"

using namespace lockstep::sim;

struct CUevent_st {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

namespace {

int gpus = 8;
thread_local int device = -1;
std::map<const std::byte*, size_t>& pinned() {
  static std::map<const std::byte*, size_t> memory;
  return memory;
}

std::string uuid_of(int gpu) { return "GPU-" + std::string(8, static_cast<char>('a' + gpu)); }

std::vector<int> visible() {
  std::vector<std::string> uuids;
  for (int gpu = 0; gpu < gpus; ++gpu) uuids.push_back(uuid_of(gpu));
  return lockstep::visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), uuids).indices;
}

int stream_of(cudaStream_t stream) { return static_cast<int>(reinterpret_cast<intptr_t>(stream)); }

bool is_pinned(const void* memory, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(memory);
  auto next = pinned().upper_bound(first);
  if (next == pinned().begin()) return false;
  --next;
  return first + bytes <= next->first + next->second;
}

cudaError_t wrong(const char* function, const char* what, cudaError_t code = cudaErrorInvalidValue) {
  misuse(function, what);
  return code;
}

// The code that a call was told to fail with.
cudaError_t failure(cudaError_t otherwise) {
  return failing_code() == 0 ? otherwise : static_cast<cudaError_t>(failing_code());
}

// What most functions have in common: they may be made to fail, and need a device.
cudaError_t begin(const char* function) {
  if (call_fails(function)) return failure(cudaErrorUnknown);
  if (device < 0) return wrong(function, "called in a thread before cudaSetDevice", cudaErrorDeviceUninitialized);
  return cudaSuccess;
}

cudaError_t begin(const char* function, cudaStream_t stream) {
  if (const cudaError_t code = begin(function); code != cudaSuccess) return code;
  if (!Scheduler::instance().exists(stream_of(stream)))
    return wrong(function, "no such stream", cudaErrorInvalidResourceHandle);
  return cudaSuccess;
}

}  // namespace

namespace lockstep::sim {

void reset(const Options& options) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  Scheduler::instance().reset(options.seed);
  DeviceMemory::instance().reset();
  pinned().clear();
  forget_calls();
  gpus = options.gpus;
  device = -1;
}

cudaError_t launch_kernel(cudaStream_t stream, std::function<void()> kernel, const char* name) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaLaunchKernel", stream); code != cudaSuccess) return code;
  const auto run = [kernel = std::move(kernel)] {
    kernel();
    return true;
  };
  Scheduler::instance().enqueue(stream_of(stream), "kernel", run, name);
  return cudaSuccess;
}

cudaError_t launch_stuck(cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaLaunchKernel", stream); code != cudaSuccess) return code;
  Scheduler::instance().enqueue(stream_of(stream), "stuck", [] { return false; });
  return cudaSuccess;
}

}  // namespace lockstep::sim

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = gpus > 0 ? CUDART_VERSION : 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(visible().size());
  if (call_fails("cudaGetDeviceCount")) return cudaErrorUnknown;
  if (gpus == 0) return cudaErrorInsufficientDriver;
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  const std::vector<int> seen = visible();
  if (call_fails("cudaGetDeviceProperties") || index < 0 || index >= static_cast<int>(seen.size()))
    return cudaErrorInvalidDevice;
  std::strcpy(properties->name, "simulated GPU");
  std::memset(properties->uuid.bytes, seen[static_cast<size_t>(index)] + 1, sizeof(properties->uuid.bytes));
  gethostname(properties->uuid.bytes + 8, 8);  // another node's GPUs are others
  properties->major = 9, properties->minor = 0;
  properties->totalGlobalMem = size_t{8} << 30;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int index) {
  const std::vector<int> seen = visible();
  if (index < 0 || index >= static_cast<int>(seen.size()) || length < 13) return cudaErrorInvalidDevice;
  std::strcpy(text, ("0000:0" + std::to_string(seen[static_cast<size_t>(index)] + 1) + ":00.0").c_str());
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }

const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorDeviceUninitialized: return "device not initialized";
    default: return "unknown error";
  }
}

cudaError_t cudaSetDevice(int index) {
  if (call_fails("cudaSetDevice")) return failure(cudaErrorInvalidDevice);
  if (index < 0 || index >= static_cast<int>(visible().size())) return cudaErrorInvalidDevice;
  device = index;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t code = begin("cudaStreamCreateWithFlags"); code != cudaSuccess) return code;
  if (flags != cudaStreamNonBlocking) return wrong("cudaStreamCreateWithFlags", "a stream that waits for stream 0");
  const std::scoped_lock lock(Scheduler::instance().mutex());
  *stream = reinterpret_cast<cudaStream_t>(static_cast<intptr_t>(Scheduler::instance().make_stream()));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (Scheduler::instance().exists(stream_of(stream))) Scheduler::instance().end_stream(stream_of(stream));
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t code = begin("cudaEventCreateWithFlags"); code != cudaSuccess) return code;
  if (flags != cudaEventDisableTiming) return wrong("cudaEventCreateWithFlags", "an event with timing");
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaEventRecord", stream); code != cudaSuccess) return code;
  Scheduler::instance().record(stream_of(stream), event->state);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaEventQuery"); code != cudaSuccess) return code;
  if (!event->state->done()) Scheduler::instance().step();
  if (!event->state->done()) return cudaErrorNotReady;
  Scheduler::instance().host_saw(*event->state);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaStreamWaitEvent", stream); code != cudaSuccess) return code;
  if (is_ignored("cudaStreamWaitEvent")) return cudaSuccess;
  Scheduler::instance().wait(stream_of(stream), event->state);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaMalloc"); code != cudaSuccess)
    return code == cudaErrorUnknown ? cudaErrorMemoryAllocation : code;
  *memory = DeviceMemory::instance().allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  while (Scheduler::instance().step()) {  // the real one waits for the device, too
  }
  if (memory != nullptr && !DeviceMemory::instance().free(memory)) return wrong("cudaFree", "not device memory");
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaHostAlloc"); code != cudaSuccess) return code;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  pinned()[static_cast<std::byte*>(*memory)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  while (Scheduler::instance().step()) {
  }
  pinned().erase(static_cast<std::byte*>(memory));
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaHostRegister"); code != cudaSuccess) return code;
  if (is_pinned(memory, 1)) return wrong("cudaHostRegister", "memory that is pinned already");
  pinned()[static_cast<std::byte*>(memory)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* memory) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  while (Scheduler::instance().step()) {
  }
  return pinned().erase(static_cast<std::byte*>(memory)) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}

// Host memory is read and written when the copy runs, which may be long after the call.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  constexpr const char* function = "cudaMemcpyAsync";
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin(function, stream); code != cudaSuccess) return code;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device ? !DeviceMemory::instance().holds(to, bytes) : !is_pinned(to, bytes))
    return wrong(function, to_device ? "the target is no device memory" : "the host memory is not pinned");
  if (from_device ? !DeviceMemory::instance().holds(from, bytes) : !is_pinned(from, bytes))
    return wrong(function, from_device ? "the source is no device memory" : "the host memory is not pinned");
  Scheduler::instance().enqueue(stream_of(stream), "copy", [=] {
    std::memmove(to, from, bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin("cudaMemsetAsync", stream); code != cudaSuccess) return code;
  if (!DeviceMemory::instance().holds(memory, bytes)) return wrong("cudaMemsetAsync", "no device memory");
  Scheduler::instance().enqueue(stream_of(stream), "memset", [=] {
    std::memset(memory, value, bytes);
    return true;
  });
  return cudaSuccess;
}

}  // extern "C"

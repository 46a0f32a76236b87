// The CUDA runtime's functions. A thread that calls one before cudaSetDevice gets an error here: with the real library
// it would make a context on GPU 0.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "backend/device_choice.h"
#include "sim/runtime/calls.h"
#include "sim/runtime/capture.h"
#include "sim/runtime/device.h"
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
thread_local bool capturing = false;
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

bool is_pinned(const void* memory, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(memory);
  auto next = pinned().upper_bound(first);
  if (next == pinned().begin()) return false;
  --next;
  return first + bytes <= next->first + next->second;
}

}  // namespace

namespace lockstep::sim {

cudaError_t wrong_call(const char* function, const char* what, cudaError_t code) {
  misuse(function, what);
  return code;
}

cudaError_t begin_call(const char* function) {
  if (call_fails(function)) return cudaErrorUnknown;
  if (device < 0) return wrong_call(function, "called in a thread before cudaSetDevice", cudaErrorDeviceUninitialized);
  return cudaSuccess;
}

cudaError_t begin_call(const char* function, cudaStream_t stream) {
  if (const cudaError_t code = begin_call(function); code != cudaSuccess) return code;
  if (!Scheduler::instance().exists(stream_number(stream)))
    return wrong_call(function, "no such stream", cudaErrorInvalidResourceHandle);
  return cudaSuccess;
}

cudaError_t begin_unsafe_call(const char* function) {
  if (const cudaError_t code = begin_call(function); code != cudaSuccess) return code;
  if (!capturing) return cudaSuccess;
  Scheduler::instance().spoil_captures();
  return wrong_call(function, "while a stream is captured", cudaErrorStreamCaptureUnsupported);
}

void set_capturing(bool now) { capturing = now; }

void reset(const Options& options) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  Scheduler::instance().reset(options.seed);
  DeviceMemory::instance().reset();
  pinned().clear();
  forget_calls();
  gpus = options.gpus;
  device = -1;
  capturing = false;
}

cudaError_t launch_kernel(cudaStream_t stream, std::function<void()> kernel, const char* name) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call("cudaLaunchKernel", stream); code != cudaSuccess) return code;
  const auto run = [kernel = std::move(kernel)] {
    kernel();
    return true;
  };
  Scheduler::instance().enqueue(stream_number(stream), "kernel", run, name);
  return cudaSuccess;
}

cudaError_t launch_stuck(cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call("cudaLaunchKernel", stream); code != cudaSuccess) return code;
  Scheduler::instance().enqueue(stream_number(stream), "stuck", [] { return false; });
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
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorDeviceUninitialized: return "device not initialized";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation: return "dependency created on uncaptured work in another stream";
    default: return "unknown error";
  }
}

cudaError_t cudaSetDevice(int index) {
  if (call_fails("cudaSetDevice") || index < 0 || index >= static_cast<int>(visible().size()))
    return cudaErrorInvalidDevice;
  device = index;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t code = begin_call("cudaStreamCreateWithFlags"); code != cudaSuccess) return code;
  if (flags != cudaStreamNonBlocking)
    return wrong_call("cudaStreamCreateWithFlags", "a stream that waits for stream 0");
  const std::scoped_lock lock(Scheduler::instance().mutex());
  *stream = reinterpret_cast<cudaStream_t>(static_cast<intptr_t>(Scheduler::instance().make_stream()));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (Scheduler::instance().exists(stream_number(stream))) Scheduler::instance().end_stream(stream_number(stream));
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t code = begin_call("cudaEventCreateWithFlags"); code != cudaSuccess) return code;
  if (flags != cudaEventDisableTiming && flags != cudaEventDefault)
    return wrong_call("cudaEventCreateWithFlags", "no such event");
  *event = new CUevent_st;
  (*event)->state->timed = flags == cudaEventDefault;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call("cudaEventRecord", stream); code != cudaSuccess) return code;
  Scheduler::instance().record(stream_number(stream), event->state);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, stream);
  constexpr const char* function = "cudaEventRecordWithFlags";
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call(function, stream); code != cudaSuccess) return code;
  Capture* capture = Scheduler::instance().capture_of(stream_number(stream));
  if (flags != cudaEventRecordExternal || capture == nullptr)
    return wrong_call(function, "an external record outside of a capture");
  event->state->captured = false;
  capture->add({.kind = Captured::Kind::external, .stream = stream_number(stream), .seen = event->state});
  return cudaSuccess;
}

// A clock that ticks with every operation of any stream.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  constexpr const char* function = "cudaEventElapsedTime";
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call(function); code != cudaSuccess) return code;
  for (const auto& state : {from->state, to->state}) {
    if (!state->timed || state->recorded == 0) return wrong_call(function, "an event without a time");
    if (!state->done()) return cudaErrorNotReady;
  }
  *milliseconds = static_cast<float>(to->state->completed_at) - static_cast<float>(from->state->completed_at);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_unsafe_call("cudaEventQuery"); code != cudaSuccess) return code;
  if (event->state->captured) return cudaErrorCapturedEvent;
  if (!event->state->done()) Scheduler::instance().step();
  if (!event->state->done()) return cudaErrorNotReady;
  Scheduler::instance().host_saw(*event->state);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call("cudaStreamWaitEvent", stream); code != cudaSuccess) return code;
  if (is_ignored("cudaStreamWaitEvent")) return cudaSuccess;
  Scheduler::instance().join(stream_number(stream), *event->state);
  if (Capture* capture = Scheduler::instance().capture_of(stream_number(stream));
      capture != nullptr && !capture->knows(event->state.get())) {
    capture->invalid = true;
    return wrong_call("cudaStreamWaitEvent", "a captured stream would wait for what is not captured",
                      cudaErrorStreamCaptureIsolation);
  } else if (capture == nullptr && event->state->captured) {
    return wrong_call("cudaStreamWaitEvent", "an event that was last recorded in a capture", cudaErrorCapturedEvent);
  }
  Scheduler::instance().wait(stream_number(stream), event->state);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_unsafe_call("cudaMalloc"); code != cudaSuccess)
    return code == cudaErrorUnknown ? cudaErrorMemoryAllocation : code;
  *memory = DeviceMemory::instance().allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (capturing) Scheduler::instance().spoil_captures();
  while (Scheduler::instance().step()) {  // the real one waits for the device, too
  }
  if (memory != nullptr && !DeviceMemory::instance().free(memory)) return wrong_call("cudaFree", "not device memory");
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_unsafe_call("cudaHostAlloc"); code != cudaSuccess) return code;
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
  if (const cudaError_t code = begin_unsafe_call("cudaHostRegister"); code != cudaSuccess) return code;
  if (is_pinned(memory, 1)) return wrong_call("cudaHostRegister", "memory that is pinned already");
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
  if (const cudaError_t code = begin_call(function, stream); code != cudaSuccess) return code;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device ? !DeviceMemory::instance().holds(to, bytes) : !is_pinned(to, bytes))
    return wrong_call(function, to_device ? "the target is no device memory" : "the host memory is not pinned");
  if (from_device ? !DeviceMemory::instance().holds(from, bytes) : !is_pinned(from, bytes))
    return wrong_call(function, from_device ? "the source is no device memory" : "the host memory is not pinned");
  Scheduler::instance().enqueue(stream_number(stream), "copy", [=] {
    std::memmove(to, from, bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call("cudaMemsetAsync", stream); code != cudaSuccess) return code;
  if (!DeviceMemory::instance().holds(memory, bytes)) return wrong_call("cudaMemsetAsync", "no device memory");
  Scheduler::instance().enqueue(stream_number(stream), "memset", [=] {
    std::memset(memory, value, bytes);
    return true;
  });
  return cudaSuccess;
}

}  // extern "C"

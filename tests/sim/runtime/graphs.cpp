// CUDA graphs: streams that are captured, and what was captured launched again.
#include <cuda_runtime_api.h>

#include <memory>

#include "sim/runtime/calls.h"
#include "sim/runtime/capture.h"
#include "sim/runtime/device.h"

using namespace lockstep::sim;

struct CUgraph_st {
  std::shared_ptr<Capture> captured;
};
struct CUgraphExec_st {
  std::shared_ptr<Capture> captured;
};

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  constexpr const char* function = "cudaStreamBeginCapture";
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call(function, stream); code != cudaSuccess) return code;
  if (mode != cudaStreamCaptureModeThreadLocal)
    return wrong_call(function, "other threads' calls would end the capture", cudaErrorInvalidValue);
  if (Scheduler::instance().capture_of(stream_number(stream)) != nullptr)
    return wrong_call(function, "the stream is captured already", cudaErrorIllegalState);
  Scheduler::instance().begin_capture(stream_number(stream));
  set_capturing(true);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  constexpr const char* function = "cudaStreamEndCapture";
  const std::scoped_lock lock(Scheduler::instance().mutex());
  set_capturing(false);
  *graph = nullptr;
  const bool fails = call_fails(function);
  if (Scheduler::instance().capture_of(stream_number(stream)) == nullptr)
    return wrong_call(function, "the stream is not captured", cudaErrorIllegalState);
  std::shared_ptr<Capture> captured = Scheduler::instance().end_capture(stream_number(stream));
  if (fails) return cudaErrorUnknown;
  if (captured->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!captured->joined())
    return wrong_call(function, "a stream that joined was not joined again", cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(captured)};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call("cudaGraphInstantiate"); code != cudaSuccess) return code;
  *executable = new CUgraphExec_st{graph->captured};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (const cudaError_t code = begin_call("cudaGraphLaunch", stream); code != cudaSuccess) return code;
  executable->captured->launch(Scheduler::instance(), stream_number(stream));
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::scoped_lock lock(Scheduler::instance().mutex());
  delete graph;
  return cudaSuccess;
}

}  // extern "C"

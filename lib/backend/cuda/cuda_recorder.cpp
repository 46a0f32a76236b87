#include "backend/cuda/cuda_recorder.h"

#include <utility>

#include "backend/cuda/cuda_check.h"

namespace lockstep {
namespace {

class CudaGraph final : public Recording {
 public:
  explicit CudaGraph(cudaGraph_t captured) {
    const cudaError_t code = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    cuda::check(code, "cudaGraphInstantiate");
  }
  ~CudaGraph() override {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch(const cuda::Stream& stream) const {
    cuda::check(cudaGraphLaunch(graph_, stream.get()), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

// Other threads, the loader's above all, may go on as ever.
void CudaRecorder::begin() {
  context_.values().prepare();
  cuda::check(cudaStreamBeginCapture(context_.compute().get(), cudaStreamCaptureModeThreadLocal),
              "cudaStreamBeginCapture");
  context_.values().enter(cuda::StepValues::Mode::recording);
}

std::unique_ptr<Recording> CudaRecorder::end() {
  context_.values().leave();
  cudaGraph_t captured = nullptr;
  cuda::check(cudaStreamEndCapture(context_.compute().get(), &captured), "cudaStreamEndCapture");
  return std::make_unique<CudaGraph>(captured);
}

void CudaRecorder::drop() noexcept {
  context_.values().leave();
  cudaGraph_t captured = nullptr;
  if (cudaStreamEndCapture(context_.compute().get(), &captured) == cudaSuccess && captured != nullptr)
    cudaGraphDestroy(captured);
  cudaGetLastError();
}

void CudaRecorder::start(Recording& recording, uint64_t key) {
  context_.values().send(key);
  static_cast<CudaGraph&>(recording).launch(context_.compute());
}

}  // namespace lockstep

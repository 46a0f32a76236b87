#include "backend/cuda/cuda_stopwatch.h"

#include "backend/cuda/cuda_check.h"

namespace lockstep {

void CudaStopwatch::mark(size_t index) {
  while (moments_.size() <= index) moments_.emplace_back(cuda::Event::Kind::timed);
  const bool recording = context_.values().mode() == cuda::StepValues::Mode::recording;
  cuda::check(cudaEventRecordWithFlags(moments_[index].get(), context_.compute().get(),
                                       recording ? cudaEventRecordExternal : cudaEventRecordDefault),
              "cudaEventRecordWithFlags");
}

double CudaStopwatch::seconds(size_t from, size_t to) const {
  float milliseconds = 0;
  cuda::check(cudaEventElapsedTime(&milliseconds, moments_[from].get(), moments_[to].get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace lockstep

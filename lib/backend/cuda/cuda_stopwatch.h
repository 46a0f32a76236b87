// Moments as CUDA events of the compute stream.
#pragma once

#include <vector>

#include "backend/cuda/context.h"
#include "backend/stopwatch.h"

namespace lockstep {

class CudaStopwatch final : public Stopwatch {
 public:
  explicit CudaStopwatch(const cuda::Context& context) : context_(context) {}  // outlives this object

  void mark(size_t index) override;
  double seconds(size_t from, size_t to) const override;

 private:
  const cuda::Context& context_;
  std::vector<cuda::Event> moments_;
};

}  // namespace lockstep

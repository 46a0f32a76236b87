// Recordings as CUDA graphs: what the compute stream is asked for, and the streams that events join to it, is captured.
#pragma once

#include "backend/cuda/context.h"
#include "backend/cuda/step_values.h"
#include "backend/recorder.h"

namespace lockstep {

class CudaRecorder final : public Recorder {
 public:
  explicit CudaRecorder(cuda::Context& context) : context_(context) {}  // outlives this object

  void begin() override;
  std::unique_ptr<Recording> end() override;
  void drop() noexcept override;
  void begin_numbers() override {
    context_.values().prepare();
    context_.values().enter(cuda::StepValues::Mode::renewing);
  }
  void end_numbers() override { context_.values().leave(); }
  void start(Recording& recording, uint64_t key) override;

 private:
  cuda::Context& context_;
};

}  // namespace lockstep

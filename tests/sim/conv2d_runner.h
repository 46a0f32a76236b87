// Runs a convolution plan on the CPU or on the simulated GPU on the same canonical numbers, and brings results back to
// the canonical layout.
#pragma once

#include <vector>

#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/dnn.h"
#include "sim/gpu_arrays.h"

namespace lockstep::test {

struct Conv2dRun {
  bool backward = true, input_gradient = true, weight_gradient = true, bias_gradient = true;
  bool accumulate = false;  // gradients twice, the second time added
};

struct Conv2dResult {
  std::vector<float> y, dx, dw, db;  // canonical, fp32
  size_t workspace_bytes = 0;
};

Conv2dResult run_on_cpu(Conv2dPlan& plan, const Conv2dSpec& spec, const Conv2dRun& run);
// What lies in the workspace between calls is lost.
Conv2dResult run_on_gpu(GpuArrays& gpu, Conv2dPlan& plan, const Conv2dSpec& spec, const Conv2dRun& run);

}  // namespace lockstep::test

// How the simulated cuDNN recommends algorithms: the first ones in its lists are the ones that a caller must not take.
#include <algorithm>

#include "sim/runtime/calls.h"
#include "sim/runtime/cudnn.h"
#include "sim/runtime/device_memory.h"
#include "sim/runtime/scheduler.h"

namespace lockstep::sim {
namespace {

constexpr size_t huge = size_t{1} << 40;
constexpr bool random_bits = false, same_bits = true;

}  // namespace

std::vector<AlgorithmFacts> algorithms(ConvolutionPass pass, const Convolution& v) {
  const auto rows = static_cast<size_t>(v.w.k);  // workspaces of odd sizes
  switch (pass) {
    case ConvolutionPass::forward:
      return {{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, same_bits, true, huge},
              {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, same_bits, false, 64},
              {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, same_bits, true, 1001 + 4 * rows},
              {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, same_bits, true, 0}};
    case ConvolutionPass::data:
      return {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, random_bits, true, 0},
              {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, same_bits, false, 64},
              {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, same_bits, true, 503 + 4 * rows}};
    case ConvolutionPass::filter:
      return {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, random_bits, true, 100},
              {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, random_bits, true, 0},
              {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, same_bits, true, huge},
              {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, same_bits, true, 777 + 4 * rows}};
  }
  return {};
}

const AlgorithmFacts* running(const std::vector<AlgorithmFacts>& all, int algorithm) {
  const auto found = std::ranges::find(all, algorithm, &AlgorithmFacts::algorithm);
  return found == all.end() || !found->runs ? nullptr : &*found;
}

namespace {

struct Descriptors {
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t c;
  cudnnTensorDescriptor_t y;
};

template <class Perf>
void tell(const Convolution& v, const AlgorithmFacts& facts, float time, Perf& perf) {
  perf = {};
  perf.algo = static_cast<decltype(perf.algo)>(facts.algorithm);
  perf.time = time;
  perf.memory = facts.workspace;
  perf.determinism = facts.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
  perf.mathType = v.c.math;
}

// In the order of expectation, nothing having been tried.
template <class Perf>
cudnnStatus_t recommend(const char* function, ConvolutionPass pass, cudnnHandle_t handle, const Descriptors& d,
                        int most, int* found, Perf* perfs) {
  if (call_fails(function)) return CUDNN_STATUS_INTERNAL_ERROR;
  Convolution v{};
  if (handle == nullptr || found == nullptr || perfs == nullptr || most < 1) return wrong(function, "a null pointer");
  if (const auto status = describe(function, d.x, d.w, d.c, d.y, v); status != CUDNN_STATUS_SUCCESS) return status;
  *found = 0;
  for (const AlgorithmFacts& facts : algorithms(pass, v)) {
    if (*found == most) break;
    tell(v, facts, -1, perfs[*found]);
    perfs[(*found)++].status = CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_SUCCESS;
}

struct Arrays {
  const void *x, *w, *y;
  void* workspace;
  size_t workspace_bytes;
};

// Those that ran in the workspace given, the fastest first, which is the last that is recommended.
template <class Perf>
cudnnStatus_t measure(const char* function, ConvolutionPass pass, cudnnHandle_t handle, const Descriptors& d,
                      const Arrays& arrays, int most, int* found, Perf* perfs) {
  if (call_fails(function)) return CUDNN_STATUS_EXECUTION_FAILED;
  Convolution v{};
  if (handle == nullptr || found == nullptr || perfs == nullptr || most < 1) return wrong(function, "a null pointer");
  if (const auto status = describe(function, d.x, d.w, d.c, d.y, v); status != CUDNN_STATUS_SUCCESS) return status;
  const std::scoped_lock lock(Scheduler::instance().mutex());
  const DeviceMemory& memory = DeviceMemory::instance();
  if (!memory.holds(arrays.x, v.x_bytes()) || !memory.holds(arrays.w, v.w_bytes()) ||
      !memory.holds(arrays.y, v.y_bytes()) ||
      (arrays.workspace_bytes > 0 && !memory.holds(arrays.workspace, arrays.workspace_bytes)))
    return wrong(function, "an array that is not in device memory");
  std::vector<AlgorithmFacts> all = algorithms(pass, v);
  std::ranges::reverse(all);
  *found = 0;
  for (const AlgorithmFacts& facts : all) {
    if (*found == most) break;
    tell(v, facts, static_cast<float>(*found + 1), perfs[*found]);
    cudnnStatus_t& status = perfs[(*found)++].status;
    status = CUDNN_STATUS_SUCCESS;
    if (facts.workspace > arrays.workspace_bytes) status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    if (!facts.runs) status = CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t workspace(const char* function, ConvolutionPass pass, const Descriptors& d, int algorithm,
                        size_t* bytes) {
  if (call_fails(function)) return CUDNN_STATUS_INTERNAL_ERROR;
  Convolution v{};
  if (const auto status = describe(function, d.x, d.w, d.c, d.y, v); status != CUDNN_STATUS_SUCCESS) return status;
  const std::vector<AlgorithmFacts> all = algorithms(pass, v);
  const auto found = std::ranges::find(all, algorithm, &AlgorithmFacts::algorithm);
  if (found == all.end()) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = found->workspace;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace lockstep::sim

using namespace lockstep::sim;

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                                     cudnnTensorDescriptor_t y, int most, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* perfs) {
  return recommend(__func__, ConvolutionPass::forward, handle, {x, w, c, y}, most, found, perfs);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t c,
                                                          cudnnTensorDescriptor_t dx, int most, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* perfs) {
  return recommend(__func__, ConvolutionPass::data, handle, {dx, w, c, dy}, most, found, perfs);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t c,
                                                            cudnnFilterDescriptor_t dw, int most, int* found,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* perfs) {
  return recommend(__func__, ConvolutionPass::filter, handle, {x, dw, c, dy}, most, found, perfs);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     const void* x_data, cudnnFilterDescriptor_t w, const void* w_data,
                                                     cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y,
                                                     void* y_data, int most, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* perfs, void* space, size_t bytes) {
  return measure(__func__, ConvolutionPass::forward, handle, {x, w, c, y}, {x_data, w_data, y_data, space, bytes}, most,
                 found, perfs);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          const void* w_data, cudnnTensorDescriptor_t dy,
                                                          const void* dy_data, cudnnConvolutionDescriptor_t c,
                                                          cudnnTensorDescriptor_t dx, void* dx_data, int most,
                                                          int* found, cudnnConvolutionBwdDataAlgoPerf_t* perfs,
                                                          void* space, size_t bytes) {
  return measure(__func__, ConvolutionPass::data, handle, {dx, w, c, dy}, {dx_data, w_data, dy_data, space, bytes},
                 most, found, perfs);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            const void* x_data, cudnnTensorDescriptor_t dy,
                                                            const void* dy_data, cudnnConvolutionDescriptor_t c,
                                                            cudnnFilterDescriptor_t dw, void* dw_data, int most,
                                                            int* found, cudnnConvolutionBwdFilterAlgoPerf_t* perfs,
                                                            void* space, size_t bytes) {
  return measure(__func__, ConvolutionPass::filter, handle, {x, dw, c, dy}, {x_data, dw_data, dy_data, space, bytes},
                 most, found, perfs);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
                                                      size_t* bytes) {
  return workspace(__func__, ConvolutionPass::forward, {x, w, c, y}, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t c,
                                                           cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return workspace(__func__, ConvolutionPass::data, {dx, w, c, dy}, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t c,
                                                             cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return workspace(__func__, ConvolutionPass::filter, {x, dw, c, dy}, algorithm, bytes);
}

}  // extern "C"

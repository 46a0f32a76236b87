// The simulated cuDNN's convolutions: checked when they are called, computed when their stream comes to them.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "sim/runtime/calls.h"
#include "sim/runtime/cudnn.h"
#include "sim/runtime/device_memory.h"
#include "sim/runtime/scheduler.h"

using namespace lockstep::sim;

namespace {

struct Call {
  const char* function;
  ConvolutionPass pass;
  cudnnHandle_t handle;
  int algorithm;
  const void *alpha, *beta;
  const void *x, *w, *y;  // wherever the result goes, too
  void* workspace;
  size_t workspace_bytes;
};

int stream_of(cudaStream_t stream) { return static_cast<int>(reinterpret_cast<intptr_t>(stream)); }

// What is wrong with the pointers of a call whose descriptors are right.
cudnnStatus_t check(const Call& call, const Convolution& v, const AlgorithmFacts*& facts,
                    const std::vector<AlgorithmFacts>& all) {
  const char* function = call.function;
  if (call.handle == nullptr || call.alpha == nullptr || call.beta == nullptr) return wrong(function, "a null pointer");
  if (call.handle->stream == nullptr || !Scheduler::instance().exists(stream_of(call.handle->stream)))
    return wrong(function, "the handle has no stream", CUDNN_STATUS_EXECUTION_FAILED);
  facts = running(all, call.algorithm);
  if (facts == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  const DeviceMemory& memory = DeviceMemory::instance();
  if (facts->workspace > call.workspace_bytes)
    return wrong(function, "less workspace than the algorithm wants", CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
  if (call.workspace_bytes > 0 && !memory.holds(call.workspace, call.workspace_bytes))
    return wrong(function, "the workspace is not in device memory");
  if (!memory.holds(call.x, v.x_bytes()) || !memory.holds(call.w, v.w_bytes()) || !memory.holds(call.y, v.y_bytes()))
    return wrong(function, "an array that is not in device memory");
  if (call.workspace_bytes > 0 && reinterpret_cast<uintptr_t>(call.workspace) % 256 != 0)
    return wrong(function, "a workspace that is not aligned", CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  for (const void* array : {call.x, call.w, call.y})
    if (reinterpret_cast<uintptr_t>(array) % 16 != 0)
      return wrong(function, "an array that is not aligned to 16 bytes", CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  return CUDNN_STATUS_SUCCESS;
}

// Output pixels in the order of an algorithm's sums.
std::vector<size_t> order(const Convolution& v, bool deterministic) {
  std::vector<size_t> pixels(static_cast<size_t>(v.y.n) * static_cast<size_t>(v.y.h) * static_cast<size_t>(v.y.w));
  std::iota(pixels.begin(), pixels.end(), size_t{0});
  if (!deterministic)
    std::ranges::shuffle(pixels, std::mt19937(static_cast<unsigned>(Scheduler::instance().draw(9999))));
  return pixels;
}

// work(alpha, beta, the order of sums), in the handle's stream.
template <class Work>
cudnnStatus_t run(const Call& call, cudnnStatus_t described, const Convolution& v, const Work& work) {
  if (call_fails(call.function)) return CUDNN_STATUS_EXECUTION_FAILED;
  if (described != CUDNN_STATUS_SUCCESS) return described;
  const std::scoped_lock lock(Scheduler::instance().mutex());
  const std::vector<AlgorithmFacts> all = algorithms(call.pass, v);
  const AlgorithmFacts* facts = nullptr;
  if (const auto status = check(call, v, facts, all); status != CUDNN_STATUS_SUCCESS) return status;
  const float alpha = *static_cast<const float*>(call.alpha), beta = *static_cast<const float*>(call.beta);
  const auto sums = std::make_shared<std::vector<size_t>>(order(v, facts->deterministic));
  Scheduler::instance().enqueue(stream_of(call.handle->stream), "convolution", [=] {
    if (call.workspace_bytes > 0) std::memset(call.workspace, 0xff, call.workspace_bytes);  // what lay there is lost
    work(alpha, beta, *sums);
    return true;
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                      const void* x_data, cudnnFilterDescriptor_t w, const void* w_data,
                                      cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t bytes, const void* beta, cudnnTensorDescriptor_t y,
                                      void* y_data) {
  Convolution v{};
  const auto described = describe(__func__, x, w, c, y, v);
  return run(
      {__func__, ConvolutionPass::forward, handle, algorithm, alpha, beta, x_data, w_data, y_data, workspace, bytes},
      described, v, [=](float a, float b, const std::vector<size_t>&) { v.forward(a, x_data, w_data, b, {}, y_data); });
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x, const void* x_data, cudnnFilterDescriptor_t w,
    const void* w_data, cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
    size_t bytes, const void* alpha2, cudnnTensorDescriptor_t z, const void* z_data, cudnnTensorDescriptor_t bias,
    const void* bias_data, cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y, void* y_data) {
  Convolution v{};
  cudnnStatus_t described = describe(__func__, x, w, c, y, v);
  const bool complete = z != nullptr && z->set && bias != nullptr && bias->set && activation != nullptr &&
                        activation->set && alpha2 != nullptr;
  const bool identity = complete && activation->mode == CUDNN_ACTIVATION_IDENTITY;
  if (described != CUDNN_STATUS_SUCCESS) {
  } else if (!complete) {
    described = wrong(__func__, "a descriptor that is missing or was never set");
  } else if (bias->n != 1 || bias->c != v.y.c || bias->h != 1 || bias->w != 1 || bias->type != v.y.type) {
    described = wrong(__func__, "the bias is not [1, C, 1, 1] of the output's type");
  } else if (z->n != v.y.n || z->c != v.y.c || z->h != v.y.h || z->w != v.y.w || z->type != v.y.type) {
    described = wrong(__func__, "the array to be added is not like the output");
  } else if (!identity && activation->mode != CUDNN_ACTIVATION_RELU) {
    described = wrong(__func__, "an activation that is neither ReLU nor identity", CUDNN_STATUS_NOT_SUPPORTED);
  } else if (activation->mode == CUDNN_ACTIVATION_RELU && activation->nan != CUDNN_PROPAGATE_NAN) {
    described = wrong(__func__, "a ReLU that loses NaN", CUDNN_STATUS_NOT_SUPPORTED);
  } else if (identity && algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    described = wrong(__func__, "without ReLU only IMPLICIT_PRECOMP_GEMM", CUDNN_STATUS_NOT_SUPPORTED);
  } else if (*static_cast<const float*>(alpha2) != 0) {
    described = wrong(__func__, "adding an array is not simulated", CUDNN_STATUS_NOT_SUPPORTED);
  } else if (!DeviceMemory::instance().holds(bias_data, v.y_bytes() / static_cast<size_t>(v.y.n * v.y.h * v.y.w)) ||
             !DeviceMemory::instance().holds(z_data, v.y_bytes())) {
    described = wrong(__func__, "an array that is not in device memory");
  }
  static constexpr float none = 0;
  return run(
      {__func__, ConvolutionPass::forward, handle, algorithm, alpha, &none, x_data, w_data, y_data, workspace, bytes},
      described, v, [=](float a, float, const std::vector<size_t>&) {
        v.forward(a, x_data, w_data, 0, {bias_data, !identity}, y_data);
      });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w,
                                           const void* w_data, cudnnTensorDescriptor_t dy, const void* dy_data,
                                           cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t algorithm,
                                           void* workspace, size_t bytes, const void* beta, cudnnTensorDescriptor_t dx,
                                           void* dx_data) {
  Convolution v{};
  const auto described = describe(__func__, dx, w, c, dy, v);
  return run(
      {__func__, ConvolutionPass::data, handle, algorithm, alpha, beta, dx_data, w_data, dy_data, workspace, bytes},
      described, v,
      [=](float a, float b, const std::vector<size_t>& pixels) { v.data(a, w_data, dy_data, b, dx_data, pixels); });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                             const void* x_data, cudnnTensorDescriptor_t dy, const void* dy_data,
                                             cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, size_t bytes, const void* beta,
                                             cudnnFilterDescriptor_t dw, void* dw_data) {
  Convolution v{};
  const auto described = describe(__func__, x, dw, c, dy, v);
  return run(
      {__func__, ConvolutionPass::filter, handle, algorithm, alpha, beta, x_data, dw_data, dy_data, workspace, bytes},
      described, v,
      [=](float a, float b, const std::vector<size_t>& pixels) { v.filter(a, x_data, dy_data, b, dw_data, pixels); });
}

}  // extern "C"

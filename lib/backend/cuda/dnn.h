// cuDNN: its functions, loaded when the first convolution is planned, a handle on the context's compute stream, and
// descriptors that are freed with their owner.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <memory>

#include "backend/cuda/context.h"
#include "core/shape.h"

namespace lockstep::cuda {

struct CudnnFunctions {
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnCreateTensorDescriptor) create_tensor;
  decltype(&cudnnSetTensor4dDescriptor) set_tensor;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor;
  decltype(&cudnnCreateFilterDescriptor) create_filter;
  decltype(&cudnnSetFilter4dDescriptor) set_filter;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution;
  decltype(&cudnnSetConvolutionGroupCount) set_groups;
  decltype(&cudnnSetConvolutionMathType) set_math;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution;
  decltype(&cudnnCreateActivationDescriptor) create_activation;
  decltype(&cudnnSetActivationDescriptor) set_activation;
  decltype(&cudnnDestroyActivationDescriptor) destroy_activation;
  decltype(&cudnnConvolutionForward) forward;
  decltype(&cudnnConvolutionBiasActivationForward) bias_activation_forward;
  decltype(&cudnnConvolutionBackwardData) backward_data;
  decltype(&cudnnConvolutionBackwardFilter) backward_filter;
  decltype(&cudnnGetConvolutionForwardAlgorithm_v7) forward_heuristics;
  decltype(&cudnnGetConvolutionBackwardDataAlgorithm_v7) data_heuristics;
  decltype(&cudnnGetConvolutionBackwardFilterAlgorithm_v7) filter_heuristics;
  decltype(&cudnnFindConvolutionForwardAlgorithmEx) forward_measure;
  decltype(&cudnnFindConvolutionBackwardDataAlgorithmEx) data_measure;
  decltype(&cudnnFindConvolutionBackwardFilterAlgorithmEx) filter_measure;
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_workspace;
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) data_workspace;
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) filter_workspace;
};

// How the algorithm of each pass of a convolution is chosen, once, when it is planned.
struct ConvolutionOptions {
  bool deterministic = true;  // the same bits on every run: others are not considered
  // By timing all of them on this GPU. Otherwise in the library's order of expectation, which is the same on equal
  // GPUs: ranks that time may choose differently, and then their results differ in the last bits.
  bool measure = false;
  bool tf32 = false;                           // fp32 products may be rounded to 11 bits for tensor cores
  size_t workspace_limit = size_t{256} << 20;  // bytes that one pass may want
};

class Dnn {
 public:
  explicit Dnn(const Context& context, const ConvolutionOptions& options = {});  // the context outlives this object
  ~Dnn();
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  const ConvolutionOptions& options() const { return options_; }
  // These load the library. Throw Error where it is missing.
  const CudnnFunctions& functions();
  cudnnHandle_t handle();
  // Throws Error "cudnnCreate failed: CUDNN_STATUS_NOT_INITIALIZED" unless status is success.
  void check(cudnnStatus_t status, const char* call) const;

 private:
  const Context& context_;
  ConvolutionOptions options_;
  CudnnFunctions functions_{};
  cudnnHandle_t handle_ = nullptr;
};

template <class Struct>
using DnnDescriptor = std::unique_ptr<Struct, cudnnStatus_t (*)(Struct*)>;
using TensorDescriptor = DnnDescriptor<cudnnTensorStruct>;
using FilterDescriptor = DnnDescriptor<cudnnFilterStruct>;
using ConvolutionDescriptor = DnnDescriptor<cudnnConvolutionStruct>;
using ActivationDescriptor = DnnDescriptor<cudnnActivationStruct>;

cudnnDataType_t data_type(DType type);
// [N, C, H, W] with channels last. Throws Error where it has more elements than cuDNN counts.
TensorDescriptor tensor(Dnn& dnn, DType type, const Shape& shape);
// [out][in][kh][kw], stored [out][kh][kw][in].
FilterDescriptor filter(Dnn& dnn, DType type, const Shape& shape);
ActivationDescriptor activation(Dnn& dnn, bool relu);

}  // namespace lockstep::cuda

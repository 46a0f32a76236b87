#include "backend/cuda/dnn.h"

#include <array>
#include <climits>

#include "backend/cuda/library.h"
#include "core/error.h"

namespace lockstep::cuda {
namespace {

constexpr const char* library = "libcudnn.so.9";

CudnnFunctions load() {
  CudnnFunctions f{};
  find(f.create, library, "cudnnCreate");
  find(f.destroy, library, "cudnnDestroy");
  find(f.set_stream, library, "cudnnSetStream");
  find(f.error_string, library, "cudnnGetErrorString");
  find(f.create_tensor, library, "cudnnCreateTensorDescriptor");
  find(f.set_tensor, library, "cudnnSetTensor4dDescriptor");
  find(f.destroy_tensor, library, "cudnnDestroyTensorDescriptor");
  find(f.create_filter, library, "cudnnCreateFilterDescriptor");
  find(f.set_filter, library, "cudnnSetFilter4dDescriptor");
  find(f.destroy_filter, library, "cudnnDestroyFilterDescriptor");
  find(f.create_convolution, library, "cudnnCreateConvolutionDescriptor");
  find(f.set_convolution, library, "cudnnSetConvolution2dDescriptor");
  find(f.set_groups, library, "cudnnSetConvolutionGroupCount");
  find(f.set_math, library, "cudnnSetConvolutionMathType");
  find(f.destroy_convolution, library, "cudnnDestroyConvolutionDescriptor");
  find(f.create_activation, library, "cudnnCreateActivationDescriptor");
  find(f.set_activation, library, "cudnnSetActivationDescriptor");
  find(f.destroy_activation, library, "cudnnDestroyActivationDescriptor");
  find(f.forward, library, "cudnnConvolutionForward");
  find(f.bias_activation_forward, library, "cudnnConvolutionBiasActivationForward");
  find(f.backward_data, library, "cudnnConvolutionBackwardData");
  find(f.backward_filter, library, "cudnnConvolutionBackwardFilter");
  find(f.forward_heuristics, library, "cudnnGetConvolutionForwardAlgorithm_v7");
  find(f.data_heuristics, library, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
  find(f.filter_heuristics, library, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  find(f.forward_measure, library, "cudnnFindConvolutionForwardAlgorithmEx");
  find(f.data_measure, library, "cudnnFindConvolutionBackwardDataAlgorithmEx");
  find(f.filter_measure, library, "cudnnFindConvolutionBackwardFilterAlgorithmEx");
  find(f.forward_workspace, library, "cudnnGetConvolutionForwardWorkspaceSize");
  find(f.data_workspace, library, "cudnnGetConvolutionBackwardDataWorkspaceSize");
  find(f.filter_workspace, library, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  return f;
}

std::array<int, 4> dims(const Shape& shape) {
  if (shape.rank() != 4 || shape.numel() < 1 || shape.numel() > INT_MAX)
    throw_error("cuDNN: expected four dimensions of together 1 to {} elements, found {}", INT_MAX, shape.str());
  return {static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2]),
          static_cast<int>(shape[3])};
}

}  // namespace

Dnn::Dnn(const Context& context, const ConvolutionOptions& options) : context_(context), options_(options) {}

Dnn::~Dnn() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

const CudnnFunctions& Dnn::functions() {
  if (functions_.create == nullptr) functions_ = load();
  return functions_;
}

cudnnHandle_t Dnn::handle() {
  if (handle_ != nullptr) return handle_;
  cudnnHandle_t handle = nullptr;
  check(functions().create(&handle), "cudnnCreate");
  handle_ = handle;
  check(functions_.set_stream(handle_, context_.compute().get()), "cudnnSetStream");
  return handle_;
}

void Dnn::check(cudnnStatus_t status, const char* call) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw_error("{} failed: {}", call, functions_.error_string(status));
}

cudnnDataType_t data_type(DType type) {
  switch (type) {
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::i64: break;
  }
  throw_error("cuDNN: no convolutions of {}", name(type));
}

TensorDescriptor tensor(Dnn& dnn, DType type, const Shape& shape) {
  const auto [n, c, h, w] = dims(shape);
  const CudnnFunctions& f = dnn.functions();
  cudnnTensorDescriptor_t made = nullptr;
  dnn.check(f.create_tensor(&made), "cudnnCreateTensorDescriptor");
  TensorDescriptor owned(made, f.destroy_tensor);
  dnn.check(f.set_tensor(made, CUDNN_TENSOR_NHWC, data_type(type), n, c, h, w), "cudnnSetTensor4dDescriptor");
  return owned;
}

FilterDescriptor filter(Dnn& dnn, DType type, const Shape& shape) {
  const auto [k, c, h, w] = dims(shape);
  const CudnnFunctions& f = dnn.functions();
  cudnnFilterDescriptor_t made = nullptr;
  dnn.check(f.create_filter(&made), "cudnnCreateFilterDescriptor");
  FilterDescriptor owned(made, f.destroy_filter);
  dnn.check(f.set_filter(made, data_type(type), CUDNN_TENSOR_NHWC, k, c, h, w), "cudnnSetFilter4dDescriptor");
  return owned;
}

ActivationDescriptor activation(Dnn& dnn, bool relu) {
  const CudnnFunctions& f = dnn.functions();
  cudnnActivationDescriptor_t made = nullptr;
  dnn.check(f.create_activation(&made), "cudnnCreateActivationDescriptor");
  ActivationDescriptor owned(made, f.destroy_activation);
  dnn.check(f.set_activation(made, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0),
            "cudnnSetActivationDescriptor");
  return owned;
}

}  // namespace lockstep::cuda

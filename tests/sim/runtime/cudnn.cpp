// cuDNN's handle and descriptors: what is set is kept, and nothing else.
#include "sim/runtime/cudnn.h"

#include "sim/runtime/calls.h"

using namespace lockstep::sim;

namespace lockstep::sim {

cudnnStatus_t wrong(const char* function, const std::string& what, cudnnStatus_t status) {
  misuse(function, what);
  return status;
}

}  // namespace lockstep::sim

namespace {

template <class Struct>
cudnnStatus_t create(const char* function, Struct** made) {
  if (call_fails(function)) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  *made = new Struct;
  return CUDNN_STATUS_SUCCESS;
}

template <class Struct>
cudnnStatus_t destroy(Struct* made) {
  delete made;
  return CUDNN_STATUS_SUCCESS;
}

bool known(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

cudnnStatus_t check_array(const char* function, cudnnTensorFormat_t format, cudnnDataType_t type,
                          const std::array<int, 4>& dims) {
  for (const int dim : dims)
    if (dim < 1) return wrong(function, "a dimension below 1");
  if (!known(type)) return wrong(function, "this data type is not simulated", CUDNN_STATUS_NOT_SUPPORTED);
  if (format != CUDNN_TENSOR_NHWC && format != CUDNN_TENSOR_NCHW)
    return wrong(function, "this format is not simulated", CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (CUDNN_STATUS_CATEGORY(status)) {
    case CUDNN_STATUS_SUCCESS: return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (call_fails("cudnnCreate")) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroy(handle); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (call_fails("cudnnSetStream")) return CUDNN_STATUS_INTERNAL_ERROR;
  if (handle == nullptr) return wrong("cudnnSetStream", "no handle");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return create("cudnnCreateTensorDescriptor", tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) { return destroy(tensor); }

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  constexpr const char* function = "cudnnSetTensor4dDescriptor";
  if (call_fails(function)) return CUDNN_STATUS_INTERNAL_ERROR;
  if (const auto status = check_array(function, format, type, {n, c, h, w}); status != CUDNN_STATUS_SUCCESS)
    return status;
  *tensor = {true, format, type, n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return create("cudnnCreateFilterDescriptor", filter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) { return destroy(filter); }

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  constexpr const char* function = "cudnnSetFilter4dDescriptor";
  if (call_fails(function)) return CUDNN_STATUS_INTERNAL_ERROR;
  if (const auto status = check_array(function, format, type, {k, c, h, w}); status != CUDNN_STATUS_SUCCESS)
    return status;
  *filter = {true, format, type, k, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return create("cudnnCreateConvolutionDescriptor", convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return destroy(convolution);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  constexpr const char* function = "cudnnSetConvolution2dDescriptor";
  if (call_fails(function)) return CUDNN_STATUS_INTERNAL_ERROR;
  if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1)
    return wrong(function, "a negative padding, or a stride or dilation below 1");
  convolution->set = true;
  convolution->padding = {pad_h, pad_w}, convolution->stride = {stride_h, stride_w};
  convolution->dilation = {dilation_h, dilation_w};
  convolution->mode = mode, convolution->compute = compute;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
  if (call_fails("cudnnSetConvolutionGroupCount")) return CUDNN_STATUS_INTERNAL_ERROR;
  if (groups < 1) return wrong("cudnnSetConvolutionGroupCount", "fewer than one group");
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  if (call_fails("cudnnSetConvolutionMathType")) return CUDNN_STATUS_INTERNAL_ERROR;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation) {
  return create("cudnnCreateActivationDescriptor", activation);
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) { return destroy(activation); }

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double) {
  if (call_fails("cudnnSetActivationDescriptor")) return CUDNN_STATUS_INTERNAL_ERROR;
  *activation = {true, mode, nan};
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"

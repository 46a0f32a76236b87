// Stands in for lib/backend/cuda/library.cpp: libraries that are loaded at run time are the simulated ones, linked in.
#include "backend/cuda/library.h"

#include <cublasLt.h>
#include <cudnn.h>

#include <map>
#include <string>

#include "core/error.h"

namespace lockstep::cuda {
namespace {

template <class Function>
std::pair<const std::string, void*> entry(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

const std::map<std::string, void*>& functions() {
  static const std::map<std::string, void*> table = {
      entry("cublasLtCreate", cublasLtCreate),
      entry("cublasLtDestroy", cublasLtDestroy),
      entry("cublasLtGetStatusString", cublasLtGetStatusString),
      entry("cublasLtMatmul", cublasLtMatmul),
      entry("cublasLtMatmulAlgoGetHeuristic", cublasLtMatmulAlgoGetHeuristic),
      entry("cublasLtMatmulDescCreate", cublasLtMatmulDescCreate),
      entry("cublasLtMatmulDescDestroy", cublasLtMatmulDescDestroy),
      entry("cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute),
      entry("cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate),
      entry("cublasLtMatmulPreferenceDestroy", cublasLtMatmulPreferenceDestroy),
      entry("cublasLtMatmulPreferenceSetAttribute", cublasLtMatmulPreferenceSetAttribute),
      entry("cublasLtMatrixLayoutCreate", cublasLtMatrixLayoutCreate),
      entry("cublasLtMatrixLayoutDestroy", cublasLtMatrixLayoutDestroy),
      entry("cudnnConvolutionBackwardData", cudnnConvolutionBackwardData),
      entry("cudnnConvolutionBackwardFilter", cudnnConvolutionBackwardFilter),
      entry("cudnnConvolutionBiasActivationForward", cudnnConvolutionBiasActivationForward),
      entry("cudnnConvolutionForward", cudnnConvolutionForward),
      entry("cudnnCreate", cudnnCreate),
      entry("cudnnCreateActivationDescriptor", cudnnCreateActivationDescriptor),
      entry("cudnnCreateConvolutionDescriptor", cudnnCreateConvolutionDescriptor),
      entry("cudnnCreateFilterDescriptor", cudnnCreateFilterDescriptor),
      entry("cudnnCreateTensorDescriptor", cudnnCreateTensorDescriptor),
      entry("cudnnDestroy", cudnnDestroy),
      entry("cudnnDestroyActivationDescriptor", cudnnDestroyActivationDescriptor),
      entry("cudnnDestroyConvolutionDescriptor", cudnnDestroyConvolutionDescriptor),
      entry("cudnnDestroyFilterDescriptor", cudnnDestroyFilterDescriptor),
      entry("cudnnDestroyTensorDescriptor", cudnnDestroyTensorDescriptor),
      entry("cudnnFindConvolutionBackwardDataAlgorithmEx", cudnnFindConvolutionBackwardDataAlgorithmEx),
      entry("cudnnFindConvolutionBackwardFilterAlgorithmEx", cudnnFindConvolutionBackwardFilterAlgorithmEx),
      entry("cudnnFindConvolutionForwardAlgorithmEx", cudnnFindConvolutionForwardAlgorithmEx),
      entry("cudnnGetConvolutionBackwardDataAlgorithm_v7", cudnnGetConvolutionBackwardDataAlgorithm_v7),
      entry("cudnnGetConvolutionBackwardDataWorkspaceSize", cudnnGetConvolutionBackwardDataWorkspaceSize),
      entry("cudnnGetConvolutionBackwardFilterAlgorithm_v7", cudnnGetConvolutionBackwardFilterAlgorithm_v7),
      entry("cudnnGetConvolutionBackwardFilterWorkspaceSize", cudnnGetConvolutionBackwardFilterWorkspaceSize),
      entry("cudnnGetConvolutionForwardAlgorithm_v7", cudnnGetConvolutionForwardAlgorithm_v7),
      entry("cudnnGetConvolutionForwardWorkspaceSize", cudnnGetConvolutionForwardWorkspaceSize),
      entry("cudnnGetErrorString", cudnnGetErrorString),
      entry("cudnnSetActivationDescriptor", cudnnSetActivationDescriptor),
      entry("cudnnSetConvolution2dDescriptor", cudnnSetConvolution2dDescriptor),
      entry("cudnnSetConvolutionGroupCount", cudnnSetConvolutionGroupCount),
      entry("cudnnSetConvolutionMathType", cudnnSetConvolutionMathType),
      entry("cudnnSetFilter4dDescriptor", cudnnSetFilter4dDescriptor),
      entry("cudnnSetStream", cudnnSetStream),
      entry("cudnnSetTensor4dDescriptor", cudnnSetTensor4dDescriptor),
  };
  return table;
}

}  // namespace

void* find_function(const char* library, const char* function) {
  const auto found = functions().find(function);
  if (found == functions().end()) throw_error("{}: {} is not simulated", library, function);
  return found->second;
}

}  // namespace lockstep::cuda

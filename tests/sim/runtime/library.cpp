// Stands in for lib/backend/cuda/library.cpp: libraries that are loaded at run time are the simulated ones, linked in.
#include "backend/cuda/library.h"

#include <cublasLt.h>

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

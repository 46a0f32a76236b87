// cuBLASLt's functions: descriptors, the choice of an algorithm, and what a call of a product must keep to.
#include "sim/runtime/cublas_lt.h"

#include <algorithm>
#include <cstring>

#include "sim/runtime/calls.h"
#include "sim/runtime/device_memory.h"
#include "sim/runtime/scheduler.h"

using namespace lockstep::sim;

struct cublasLtContext {};

namespace {

struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

// What an algorithm was chosen for, in the library's 64 bytes.
struct Algorithm {
  static constexpr uint64_t kMagic = 0x10c45739;
  uint64_t magic = kMagic, m = 0, n = 0, k = 0, workspace = 0;
  uint32_t alignment_a = 0, alignment_b = 0, alignment_d = 0;
  int16_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  uint16_t alignment_bias = 0, alignment_mask = 0;  // as the pointers were when it was chosen
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

constexpr uint64_t wanted_workspace = 6000;  // no multiple of anything

Layout& of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<Layout*>(layout); }
Description& of(cublasLtMatmulDesc_t product) { return *reinterpret_cast<Description*>(product); }
Preference& of(cublasLtMatmulPreference_t preference) { return *reinterpret_cast<Preference*>(preference); }

template <class Value>
cublasStatus_t set(const char* function, Value& value, const void* from, size_t bytes) {
  if (from == nullptr || bytes != sizeof(value)) return wrong_product(function, "an attribute of another size");
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool aligned(const void* memory, uint32_t alignment) { return reinterpret_cast<uintptr_t>(memory) % alignment == 0; }

// What a pointer promises of those that will take its place; a null pointer as much as there is.
uint16_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return static_cast<uint16_t>(address == 0 ? 256 : std::min<uintptr_t>(address & (~address + 1), 256));
}

// The epilogue's own arrays.
cublasStatus_t check_epilogue(const char* function, const Matmul& run, const Algorithm& chosen) {
  const DeviceMemory& memory = DeviceMemory::instance();
  const Description& product = run.product;
  const Epilogue epilogue(product.epilogue);
  const uint64_t bias = epilogue.bias_length(run.sizes.m, run.sizes.n);
  if (bias > 0 && !memory.holds(product.bias, bias * run.d.element()))
    return wrong_product(
        function, epilogue.has_gradient() ? "the bias gradient is no device memory" : "the bias is no device memory");
  if (bias > 0 && !aligned(product.bias, chosen.alignment_bias))
    return wrong_product(function, "a bias that is less aligned than was promised");
  if (!epilogue.has_mask()) return CUBLAS_STATUS_SUCCESS;
  if (!memory.holds(product.mask, static_cast<uint64_t>(product.mask_step) / 8 * run.sizes.n))
    return wrong_product(function, "the mask is no device memory");
  if (!aligned(product.mask, chosen.alignment_mask))
    return wrong_product(function, "a mask that is less aligned than was promised");
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality requested is not supported";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    default: return "an internal operation failed";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (call_fails("cublasLtCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (call_fails("cublasLtMatmulDescCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  *product = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{.compute = compute, .scale = scale});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete &of(product);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  constexpr const char* function = "cublasLtMatmulDescSetAttribute";
  if (call_fails(function)) return CUBLAS_STATUS_INTERNAL_ERROR;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(function, of(product).transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(function, of(product).transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(function, of(product).epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(function, of(product).bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(function, of(product).mask, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(function, of(product).mask_step, value, bytes);
    default: return wrong_product(function, "this attribute is not simulated");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
  if (call_fails("cublasLtMatrixLayoutCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, step});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (call_fails("cublasLtMatmulPreferenceCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &of(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  constexpr const char* function = "cublasLtMatmulPreferenceSetAttribute";
  if (call_fails(function)) return CUBLAS_STATUS_INTERNAL_ERROR;
  Preference& wanted = of(preference);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(function, wanted.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(function, wanted.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(function, wanted.alignment_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(function, wanted.alignment_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(function, wanted.alignment_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(function, wanted.alignment_d, value, bytes);
    default: return wrong_product(function, "this attribute is not simulated");
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  constexpr const char* function = "cublasLtMatmulAlgoGetHeuristic";
  if (call_fails(function)) return CUBLAS_STATUS_INTERNAL_ERROR;
  Sizes sizes{};
  if (const auto status = check_product(function, of(product), of(a), of(b), of(c), of(d), sizes);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (most < 1) return wrong_product(function, "no result is wanted");
  *found = 0;
  if (!has_epilogue(of(product).epilogue)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Preference& wanted = of(preference);
  const Algorithm chosen{.m = sizes.m,
                         .n = sizes.n,
                         .k = sizes.k,
                         .workspace = wanted.workspace < wanted_workspace ? 0 : wanted_workspace,
                         .alignment_a = wanted.alignment_a,
                         .alignment_b = wanted.alignment_b,
                         .alignment_d = wanted.alignment_d,
                         .epilogue = static_cast<int16_t>(of(product).epilogue),
                         .alignment_bias = alignment_of(of(product).bias),
                         .alignment_mask = alignment_of(of(product).mask)};
  std::memcpy(&results->algo, &chosen, sizeof(chosen));
  results->workspaceSize = chosen.workspace;
  results->state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  constexpr const char* function = "cublasLtMatmul";
  const std::scoped_lock lock(Scheduler::instance().mutex());
  if (call_fails(function)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (handle == nullptr) return wrong_product(function, "no handle", CUBLAS_STATUS_NOT_INITIALIZED);
  const Description& description = of(product);
  Matmul run{.product = description,
             .a = of(a_layout),
             .b = of(b_layout),
             .c = of(c_layout),
             .d = of(d_layout),
             .from_a = a,
             .from_b = b,
             .from_c = c,
             .to = d,
             .workspace = workspace,
             .workspace_bytes = workspace_bytes};
  if (const auto status = check_product(function, description, run.a, run.b, run.c, run.d, run.sizes);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  Algorithm chosen;
  if (algorithm == nullptr) return wrong_product(function, "no algorithm");
  std::memcpy(static_cast<void*>(&chosen), algorithm, sizeof(chosen));
  if (chosen.magic != Algorithm::kMagic || chosen.m != run.sizes.m || chosen.n != run.sizes.n ||
      chosen.k != run.sizes.k || chosen.epilogue != description.epilogue)
    return wrong_product(function, "an algorithm that was chosen for another product");
  const DeviceMemory& memory = DeviceMemory::instance();
  if (chosen.workspace > workspace_bytes) return wrong_product(function, "less workspace than the algorithm wants");
  if (workspace_bytes > 0 && (!memory.holds(workspace, workspace_bytes) || !aligned(workspace, 256)))
    return wrong_product(function, "the workspace is no device memory, or not aligned");
  if (!memory.holds(a, run.a.bytes()) || !memory.holds(b, run.b.bytes()) || !memory.holds(d, run.d.bytes()) ||
      !memory.holds(c, run.c.bytes()))
    return wrong_product(function, "a matrix that is not in device memory");
  if (!aligned(a, chosen.alignment_a) || !aligned(b, chosen.alignment_b) || !aligned(d, chosen.alignment_d))
    return wrong_product(function, "a matrix that is less aligned than was promised");
  if (const auto status = check_epilogue(function, run, chosen); status != CUBLAS_STATUS_SUCCESS) return status;
  std::memcpy(&run.alpha, alpha, sizeof(float));
  std::memcpy(&run.beta, beta, sizeof(float));
  const auto number = static_cast<int>(reinterpret_cast<intptr_t>(stream));
  if (!Scheduler::instance().exists(number)) return wrong_product(function, "no such stream");
  Scheduler::instance().enqueue(number, "matmul", run);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

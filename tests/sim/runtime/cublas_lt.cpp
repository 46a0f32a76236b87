// cuBLASLt's functions, for products of matrices without batches: computed from what the descriptors say, when the
// stream comes to it. What the real library would refuse, or quietly compute wrong, is refused and told.
#include <cublasLt.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/half.h"
#include "sim/runtime/calls.h"
#include "sim/runtime/device_memory.h"
#include "sim/runtime/scheduler.h"
#include "sim/runtime/tf32.h"

using namespace lockstep::sim;

struct cublasLtContext {};

namespace {

struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t step;  // from column to column
  size_t element() const { return type == CUDA_R_32F ? 4 : 2; }
  size_t bytes() const { return ((columns - 1) * static_cast<uint64_t>(step) + rows) * element(); }
};

struct Description {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N, epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

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
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

constexpr uint64_t wanted_workspace = 6000;  // no multiple of anything

Layout& of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<Layout*>(layout); }
Description& of(cublasLtMatmulDesc_t product) { return *reinterpret_cast<Description*>(product); }
Preference& of(cublasLtMatmulPreference_t preference) { return *reinterpret_cast<Preference*>(preference); }

cublasStatus_t wrong(const char* function, const std::string& what, cublasStatus_t code = CUBLAS_STATUS_INVALID_VALUE) {
  misuse(function, what);
  return code;
}

template <class Value>
cublasStatus_t set(const char* function, Value& value, const void* from, size_t bytes) {
  if (from == nullptr || bytes != sizeof(value)) return wrong(function, "an attribute of another size");
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

struct Sizes {
  uint64_t m, n, k;
};

// Shapes and types that belong together; what the table of the library's manual says of them.
cublasStatus_t check_product(const char* function, const Description& product, const Layout& a, const Layout& b,
                             const Layout& c, const Layout& d, Sizes& sizes) {
  const bool ta = product.transpose_a == CUBLAS_OP_T, tb = product.transpose_b == CUBLAS_OP_T;
  sizes = {ta ? a.columns : a.rows, tb ? b.rows : b.columns, ta ? a.rows : a.columns};
  if ((tb ? b.columns : b.rows) != sizes.k || d.rows != sizes.m || d.columns != sizes.n || c.rows != d.rows ||
      c.columns != d.columns)
    return wrong(function, "matrices that do not fit each other");
  for (const Layout* layout : {&a, &b, &c, &d}) {
    if (layout->rows == 0 || layout->columns == 0) return wrong(function, "an empty matrix");
    if (layout->step < static_cast<int64_t>(layout->rows)) return wrong(function, "columns that overlap");
  }
  const bool tf32 = product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if ((product.compute != CUBLAS_COMPUTE_32F && !tf32) || product.scale != CUDA_R_32F)
    return wrong(function, "only fp32 sums are simulated", CUBLAS_STATUS_NOT_SUPPORTED);
  if (tf32 && a.type != CUDA_R_32F) return wrong(function, "TF32 is for fp32 matrices", CUBLAS_STATUS_NOT_SUPPORTED);
  const bool known = a.type == CUDA_R_32F || a.type == CUDA_R_16BF || a.type == CUDA_R_16F;
  if (!known || a.type != b.type || c.type != d.type || (d.type != a.type && d.type != CUDA_R_32F))
    return wrong(function, "no product of these types", CUBLAS_STATUS_NOT_SUPPORTED);
  const bool reads_bias = (product.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const int rest = product.epilogue & ~(CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_RELU);
  if (rest != 0 && product.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return wrong(function, "this epilogue is not simulated", CUBLAS_STATUS_NOT_SUPPORTED);
  if (!reads_bias && product.bias != nullptr) return wrong(function, "a bias that nobody reads");
  return CUBLAS_STATUS_SUCCESS;
}

float read(cudaDataType type, const void* from, size_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(from)[i];
  if (type == CUDA_R_16BF) return lockstep::widen(static_cast<const lockstep::Bf16*>(from)[i]);
  return lockstep::widen(static_cast<const lockstep::F16*>(from)[i]);
}

void write(cudaDataType type, float value, void* to, size_t i) {
  if (type == CUDA_R_32F) static_cast<float*>(to)[i] = value;
  if (type == CUDA_R_16BF) lockstep::narrow(value, static_cast<lockstep::Bf16*>(to)[i]);
  if (type == CUDA_R_16F) lockstep::narrow(value, static_cast<lockstep::F16*>(to)[i]);
}

struct Matmul {
  Description product;
  Layout a, b, c, d;
  Sizes sizes;
  float alpha, beta;
  const void *from_a, *from_b, *from_c;
  void *to, *workspace;
  size_t workspace_bytes;

  // Sums go from k to k, so that a column of the result is a loop without dependencies.
  bool operator()() const {
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);  // whatever lay there is lost
    std::vector<float> by_k(sizes.m * sizes.k), column(sizes.m);
    for (uint64_t k = 0; k < sizes.k; ++k)
      for (uint64_t m = 0; m < sizes.m; ++m)
        by_k[k * sizes.m + m] = factor(a.type, from_a, at(a, product.transpose_a, m, k));
    for (uint64_t n = 0; n < sizes.n; ++n) {
      std::fill(column.begin(), column.end(), 0.0F);
      for (uint64_t k = 0; k < sizes.k; ++k) {
        const float one = factor(b.type, from_b, at(b, product.transpose_b, k, n));
        const float* row = by_k.data() + k * sizes.m;
        for (uint64_t m = 0; m < sizes.m; ++m) column[m] += row[m] * one;
      }
      for (uint64_t m = 0; m < sizes.m; ++m) write(d.type, finished(column[m], m, n), to, at(d, CUBLAS_OP_N, m, n));
    }
    return true;
  }

 private:
  float factor(cudaDataType type, const void* from, size_t i) const {
    const float value = read(type, from, i);
    return product.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? tf32(value) : value;
  }
  static size_t at(const Layout& layout, int32_t transposed, uint64_t row, uint64_t column) {
    return transposed == CUBLAS_OP_T ? row * static_cast<uint64_t>(layout.step) + column
                                     : column * static_cast<uint64_t>(layout.step) + row;
  }
  float finished(float sum, uint64_t m, uint64_t n) const {
    float value = alpha * sum;
    if (beta != 0) value += beta * read(c.type, from_c, at(c, CUBLAS_OP_N, m, n));
    if ((product.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += read(d.type, product.bias, m);
    return (product.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 && value <= 0 ? 0 : value;
  }
};

bool aligned(const void* memory, uint32_t alignment) { return reinterpret_cast<uintptr_t>(memory) % alignment == 0; }

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
    default: return wrong(function, "this attribute is not simulated");
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
    default: return wrong(function, "this attribute is not simulated");
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
  if (most < 1) return wrong(function, "no result is wanted");
  const Preference& wanted = of(preference);
  const Algorithm chosen{.m = sizes.m,
                         .n = sizes.n,
                         .k = sizes.k,
                         .workspace = wanted.workspace < wanted_workspace ? 0 : wanted_workspace,
                         .alignment_a = wanted.alignment_a,
                         .alignment_b = wanted.alignment_b,
                         .alignment_d = wanted.alignment_d};
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
  if (handle == nullptr) return wrong(function, "no handle", CUBLAS_STATUS_NOT_INITIALIZED);
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
  if (algorithm == nullptr) return wrong(function, "no algorithm");
  std::memcpy(static_cast<void*>(&chosen), algorithm, sizeof(chosen));
  if (chosen.magic != Algorithm::kMagic || chosen.m != run.sizes.m || chosen.n != run.sizes.n ||
      chosen.k != run.sizes.k)
    return wrong(function, "an algorithm that was chosen for another product");
  const DeviceMemory& memory = DeviceMemory::instance();
  if (chosen.workspace > workspace_bytes) return wrong(function, "less workspace than the algorithm wants");
  if (workspace_bytes > 0 && (!memory.holds(workspace, workspace_bytes) || !aligned(workspace, 256)))
    return wrong(function, "the workspace is no device memory, or not aligned");
  if (!memory.holds(a, run.a.bytes()) || !memory.holds(b, run.b.bytes()) || !memory.holds(d, run.d.bytes()) ||
      !memory.holds(c, run.c.bytes()))
    return wrong(function, "a matrix that is not in device memory");
  if (!aligned(a, chosen.alignment_a) || !aligned(b, chosen.alignment_b) || !aligned(d, chosen.alignment_d))
    return wrong(function, "a matrix that is less aligned than was promised");
  if ((description.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 &&
      !memory.holds(description.bias, run.sizes.m * run.d.element()))
    return wrong(function, "the bias is no device memory");
  std::memcpy(&run.alpha, alpha, sizeof(float));
  std::memcpy(&run.beta, beta, sizeof(float));
  const auto number = static_cast<int>(reinterpret_cast<intptr_t>(stream));
  if (!Scheduler::instance().exists(number)) return wrong(function, "no such stream");
  Scheduler::instance().enqueue(number, "matmul", run);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

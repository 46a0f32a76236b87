#include "backend/cuda/blas_lt.h"

#include "backend/cuda/library.h"
#include "core/error.h"

namespace lockstep::cuda {
namespace {

constexpr uint64_t most_workspace = uint64_t{32} << 20;
constexpr uint32_t alignment = 16;

cudaDataType_t type_of(DType type) {
  switch (type) {
    case DType::f32: return CUDA_R_32F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    case DType::i64: break;
  }
  throw_error("a product of {}", name(type));
}

cublasLtEpilogue_t epilogue_of(const ProductSpec& spec) {
  if (spec.bias) return spec.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return spec.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

BlasLtFunctions::BlasLtFunctions() {
  const std::string file = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  const char* library = file.c_str();
  find(create, library, "cublasLtCreate");
  find(destroy, library, "cublasLtDestroy");
  find(status_text, library, "cublasLtGetStatusString");
  find(matmul, library, "cublasLtMatmul");
  find(heuristic, library, "cublasLtMatmulAlgoGetHeuristic");
  find(create_product, library, "cublasLtMatmulDescCreate");
  find(destroy_product, library, "cublasLtMatmulDescDestroy");
  find(set_product, library, "cublasLtMatmulDescSetAttribute");
  find(create_preference, library, "cublasLtMatmulPreferenceCreate");
  find(destroy_preference, library, "cublasLtMatmulPreferenceDestroy");
  find(set_preference, library, "cublasLtMatmulPreferenceSetAttribute");
  find(create_layout, library, "cublasLtMatrixLayoutCreate");
  find(destroy_layout, library, "cublasLtMatrixLayoutDestroy");
}

BlasLt::BlasLt(const Context& context, bool tf32) : context_(context), tf32_(tf32) {
  check(functions_.create(&handle_), "cublasLtCreate");
}
BlasLt::~BlasLt() { functions_.destroy(handle_); }

void BlasLt::check(cublasStatus_t status, const char* call) const {
  if (status != CUBLAS_STATUS_SUCCESS) throw_error("{} failed: {}", call, functions_.status_text(status));
}

Product::Product(const BlasLt& blas, const ProductSpec& spec)
    : blas_(blas),
      spec_(spec),
      product_(describe()),
      a_(layout(spec.a)),
      b_(layout(spec.b)),
      d_(layout({spec.type, spec.a.transposed ? spec.a.columns : spec.a.rows,
                 spec.b.transposed ? spec.b.rows : spec.b.columns})) {
  choose_algorithm();
}

Product::Description Product::describe() const {
  const BlasLtFunctions& lt = blas_.functions();
  cublasLtMatmulDesc_t made = nullptr;
  const bool rounded = blas_.tf32() && spec_.a.type == DType::f32;
  const cublasComputeType_t compute = rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  blas_.check(lt.create_product(&made, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Description product(made, lt.destroy_product);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, int32_t value) {
    blas_.check(lt.set_product(made, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, spec_.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, spec_.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<int32_t>(epilogue_of(spec_)));
  return product;
}

Product::Layout Product::layout(const Matrix& matrix) const {
  const BlasLtFunctions& lt = blas_.functions();
  const auto rows = static_cast<uint64_t>(matrix.rows), columns = static_cast<uint64_t>(matrix.columns);
  cublasLtMatrixLayout_t made = nullptr;
  blas_.check(lt.create_layout(&made, type_of(matrix.type), rows, columns, matrix.rows), "cublasLtMatrixLayoutCreate");
  return {made, lt.destroy_layout};
}

void Product::choose_algorithm() {
  const BlasLtFunctions& lt = blas_.functions();
  cublasLtMatmulPreference_t wanted = nullptr;
  blas_.check(lt.create_preference(&wanted), "cublasLtMatmulPreferenceCreate");
  // Parts of a sum may be added by way of the workspace, in their order; not in the 16 bits of the result.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  cublasStatus_t status = lt.set_preference(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_workspace, 8);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, uint32_t value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = lt.set_preference(wanted, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(attribute, alignment);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const bool asked = status == CUBLAS_STATUS_SUCCESS;
  if (asked)
    status =
        lt.heuristic(blas_.handle(), product_.get(), a_.get(), b_.get(), d_.get(), d_.get(), wanted, 1, &found, &count);
  lt.destroy_preference(wanted);
  blas_.check(status, asked ? "cublasLtMatmulAlgoGetHeuristic" : "cublasLtMatmulPreferenceSetAttribute");
  if (count == 0)
    throw_error("cuBLASLt has no algorithm for a product of {}: {} x {} with {} x {}", name(spec_.a.type), spec_.a.rows,
                spec_.a.columns, spec_.b.rows, spec_.b.columns);
  algorithm_ = found.algo;
  workspace_bytes_ = found.workspaceSize;
}

void Product::run(const void* a, const void* b, const void* bias, bool accumulate, void* d, void* workspace) {
  const BlasLtFunctions& lt = blas_.functions();
  if (bias != bias_) {
    blas_.check(lt.set_product(product_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(&bias),
                               sizeof(bias)),
                "cublasLtMatmulDescSetAttribute");
    bias_ = bias;
  }
  const float one = 1, beta = accumulate ? 1 : 0;
  blas_.check(lt.matmul(blas_.handle(), product_.get(), &one, a, a_.get(), b, b_.get(), &beta, d, d_.get(), d, d_.get(),
                        &algorithm_, workspace, workspace_bytes_, blas_.context().compute().get()),
              "cublasLtMatmul");
}

}  // namespace lockstep::cuda

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
  if (spec.mask && spec.relu) return spec.bias ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX;
  if (spec.mask) return spec.bias_gradient ? CUBLASLT_EPILOGUE_DRELU_BGRAD : CUBLASLT_EPILOGUE_DRELU;
  if (spec.bias_gradient) return CUBLASLT_EPILOGUE_BGRADB;
  if (spec.bias) return spec.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return spec.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

// From column to column of a mask, in bits, as the library wants it.
int64_t mask_step(int64_t rows) { return static_cast<int64_t>(align_up(static_cast<size_t>(rows), 128)); }

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

Product::Product(const BlasLt& blas, const ProductSpec& spec, Unplanned)
    : blas_(&blas), spec_(spec), product_(describe()), a_(layout(spec.a)), b_(layout(spec.b)), d_(layout(result())) {}

Product::Product(const BlasLt& blas, const ProductSpec& spec) : Product(blas, spec, Unplanned{}) {
  if (!choose_algorithm())
    throw_error("cuBLASLt has no algorithm for a product of {}: {} x {} with {} x {}", name(spec_.a.type), spec_.a.rows,
                spec_.a.columns, spec_.b.rows, spec_.b.columns);
}

std::optional<Product> Product::find(const BlasLt& blas, const ProductSpec& spec) {
  std::optional<Product> product(Product(blas, spec, Unplanned{}));
  if (!product->choose_algorithm()) product.reset();
  return product;
}

Matrix Product::result() const {
  return {spec_.type, spec_.a.transposed ? spec_.a.columns : spec_.a.rows,
          spec_.b.transposed ? spec_.b.rows : spec_.b.columns};
}

size_t Product::mask_bytes(int64_t rows, int64_t columns) { return static_cast<size_t>(mask_step(rows) / 8 * columns); }

Product::Description Product::describe() const {
  const BlasLtFunctions& lt = blas_->functions();
  cublasLtMatmulDesc_t made = nullptr;
  const bool rounded = blas_->tf32() && spec_.a.type == DType::f32;
  const cublasComputeType_t compute = rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  blas_->check(lt.create_product(&made, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Description product(made, lt.destroy_product);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, int32_t value) {
    blas_->check(lt.set_product(made, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, spec_.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, spec_.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<int32_t>(epilogue_of(spec_)));
  // While an algorithm is looked for, pointers only say how they will be aligned.
  const auto promise = [&](cublasLtMatmulDescAttributes_t attribute) {
    const auto pointer = static_cast<uint64_t>(alignment);
    blas_->check(lt.set_product(made, attribute, &pointer, sizeof(pointer)), "cublasLtMatmulDescSetAttribute");
  };
  if (spec_.bias || spec_.bias_gradient) promise(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  if (!spec_.mask) return product;
  promise(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
  const int64_t step = mask_step(result().rows);
  blas_->check(lt.set_product(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &step, sizeof(step)),
               "cublasLtMatmulDescSetAttribute");
  return product;
}

Product::Layout Product::layout(const Matrix& matrix) const {
  const BlasLtFunctions& lt = blas_->functions();
  const auto rows = static_cast<uint64_t>(matrix.rows), columns = static_cast<uint64_t>(matrix.columns);
  cublasLtMatrixLayout_t made = nullptr;
  blas_->check(lt.create_layout(&made, type_of(matrix.type), rows, columns, matrix.rows), "cublasLtMatrixLayoutCreate");
  return {made, lt.destroy_layout};
}

bool Product::choose_algorithm() {
  const BlasLtFunctions& lt = blas_->functions();
  cublasLtMatmulPreference_t wanted = nullptr;
  blas_->check(lt.create_preference(&wanted), "cublasLtMatmulPreferenceCreate");
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
    status = lt.heuristic(blas_->handle(), product_.get(), a_.get(), b_.get(), d_.get(), d_.get(), wanted, 1, &found,
                          &count);
  lt.destroy_preference(wanted);
  if (asked && status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  blas_->check(status, asked ? "cublasLtMatmulAlgoGetHeuristic" : "cublasLtMatmulPreferenceSetAttribute");
  if (count == 0) return false;
  algorithm_ = found.algo;
  workspace_bytes_ = found.workspaceSize;
  return true;
}

void Product::point(cublasLtMatmulDescAttributes_t attribute, const void* to, const void*& described) {
  if (to == described) return;
  blas_->check(blas_->functions().set_product(product_.get(), attribute, static_cast<const void*>(&to), sizeof(to)),
               "cublasLtMatmulDescSetAttribute");
  described = to;
}

void Product::run(const ProductArrays& arrays) {
  if (spec_.bias) point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, arrays.bias, bias_);
  if (spec_.bias_gradient) point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, arrays.bias_gradient, bias_);
  if (spec_.mask) point(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, arrays.mask, mask_);
  const float one = 1, beta = arrays.accumulate ? 1 : 0;
  blas_->check(blas_->functions().matmul(blas_->handle(), product_.get(), &one, arrays.a, a_.get(), arrays.b, b_.get(),
                                         &beta, arrays.d, d_.get(), arrays.d, d_.get(), &algorithm_, arrays.workspace,
                                         workspace_bytes_, blas_->context().compute().get()),
               "cublasLtMatmul");
}

}  // namespace lockstep::cuda

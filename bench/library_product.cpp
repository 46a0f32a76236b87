#include "bench/library_product.h"

#include "core/error.h"

namespace lockstep::bench {
namespace {

using cuda::BlasLt;
using cuda::BlasLtFunctions;

cudaDataType_t type_of(DType type) {
  return type == DType::f32 ? CUDA_R_32F : type == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

auto describe(const BlasLt& blas, const cuda::ProductSpec& spec) {
  const BlasLtFunctions& lt = blas.functions();
  cublasLtMatmulDesc_t made = nullptr;
  blas.check(lt.create_product(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(lt.destroy_product)> product(made, lt.destroy_product);
  const int32_t a = spec.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, b = spec.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  blas.check(lt.set_product(made, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof(a)), "cublasLtMatmulDescSetAttribute");
  blas.check(lt.set_product(made, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof(b)), "cublasLtMatmulDescSetAttribute");
  return product;
}

}  // namespace

LibraryProduct::LibraryProduct(const BlasLt& blas, const cuda::ProductSpec& spec)
    : blas_(blas),
      product_(describe(blas, spec)),
      a_(layout(spec.a.type, spec.a.rows, spec.a.columns)),
      b_(layout(spec.b.type, spec.b.rows, spec.b.columns)),
      d_(layout(spec.type, spec.a.transposed ? spec.a.columns : spec.a.rows,
                spec.b.transposed ? spec.b.rows : spec.b.columns)),
      workspace_(blas.context().allocate(workspace_bytes)) {
  const BlasLtFunctions& lt = blas.functions();
  cublasLtMatmulPreference_t wanted = nullptr;
  blas.check(lt.create_preference(&wanted), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(lt.destroy_preference)> owner(wanted,
                                                                                                 lt.destroy_preference);
  const uint64_t bytes = workspace_bytes;
  blas.check(lt.set_preference(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)),
             "cublasLtMatmulPreferenceSetAttribute");
  int count = 0;
  blas.check(lt.heuristic(blas.handle(), product_.get(), a_.get(), b_.get(), d_.get(), d_.get(), wanted,
                          static_cast<int>(most), found_, &count),
             "cublasLtMatmulAlgoGetHeuristic");
  if (count < 1) throw_error("cuBLASLt proposes no algorithm for the product");
  count_ = static_cast<size_t>(count);
}

LibraryProduct::Layout LibraryProduct::layout(DType type, int64_t rows, int64_t columns) const {
  const BlasLtFunctions& lt = blas_.functions();
  cublasLtMatrixLayout_t made = nullptr;
  blas_.check(lt.create_layout(&made, type_of(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
              "cublasLtMatrixLayoutCreate");
  return {made, lt.destroy_layout};
}

void LibraryProduct::run(const void* a, const void* b, void* d) {
  const BlasLtFunctions& lt = blas_.functions();
  const float one = 1, zero = 0;
  const auto& algorithm = found_[taken_];
  blas_.check(lt.matmul(blas_.handle(), product_.get(), &one, a, a_.get(), b, b_.get(), &zero, d, d_.get(), d, d_.get(),
                        &algorithm.algo, workspace_.data(), algorithm.workspaceSize, blas_.context().compute().get()),
              "cublasLtMatmul");
}

}  // namespace lockstep::bench

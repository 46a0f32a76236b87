// Matrix products by cuBLASLt. A Product is planned once: descriptors, and the algorithm that its heuristic names first
// among those whose sums have a fixed order, so every run has the same bits.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/cuda/context.h"
#include "core/shape.h"

namespace lockstep::cuda {

// The functions that we call; see library.h.
struct BlasLtFunctions {
  BlasLtFunctions();  // loads the library; throws Error where it is missing
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) status_text;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) create_product;
  decltype(&cublasLtMatmulDescDestroy) destroy_product;
  decltype(&cublasLtMatmulDescSetAttribute) set_product;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
};

class BlasLt {
 public:
  // The context outlives this object. tf32: fp32 products may round their factors to 11 bits for tensor cores.
  explicit BlasLt(const Context& context, bool tf32 = false);
  ~BlasLt();
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;

  const Context& context() const { return context_; }
  bool tf32() const { return tf32_; }
  const BlasLtFunctions& functions() const { return functions_; }
  cublasLtHandle_t handle() const { return handle_; }
  // Throws Error "cublasLtMatmul failed: ..." unless status is success.
  void check(cublasStatus_t status, const char* call) const;

 private:
  const Context& context_;
  bool tf32_;
  BlasLtFunctions functions_;
  cublasLtHandle_t handle_ = nullptr;
};

// A matrix as cuBLAS sees it: column after column, without gaps.
struct Matrix {
  DType type = DType::f32;
  int64_t rows = 0, columns = 0;
  bool transposed = false;  // in the product
};

// d = activation(a b + bias): bias has an element per row of d, and d's type. Sums and scaling are fp32's, and so
// are products unless BlasLt permits TF32.
struct ProductSpec {
  Matrix a, b;
  DType type = DType::f32;  // of d
  bool bias = false, relu = false;
};

class Product {
 public:
  static constexpr size_t workspace_alignment = 256;

  // blas: outlives this object. Throws Error where there is no algorithm.
  Product(const BlasLt& blas, const ProductSpec& spec);

  size_t workspace_bytes() const { return workspace_bytes_; }
  // Queued on the compute stream. All arrays begin at multiples of 16 bytes, the workspace at workspace_alignment.
  // accumulate: d is added to instead of overwritten (without bias and activation). bias: null without.
  void run(const void* a, const void* b, const void* bias, bool accumulate, void* d, void* workspace);

 private:
  using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(&cublasLtMatmulDescDestroy)>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(&cublasLtMatrixLayoutDestroy)>;
  Description describe() const;
  Layout layout(const Matrix& matrix) const;
  void choose_algorithm();

  const BlasLt& blas_;
  ProductSpec spec_;
  Description product_;
  Layout a_, b_, d_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_bytes_ = 0;
  const void* bias_ = nullptr;  // as the descriptor has it
};

}  // namespace lockstep::cuda

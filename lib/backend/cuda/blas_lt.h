// Matrix products by cuBLASLt. A Product is planned once: descriptors, and the algorithm that its heuristic names first
// among those whose sums have a fixed order, so every run has the same bits. Bias, ReLU, its mask and the gradient of a
// bias can be part of it, as far as the library has an algorithm that does them.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

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
  // With relu: keeps the ReLU's mask. Without: d = a b, masked by one that was kept.
  bool mask = false;
  // The sums of d's rows once it is masked; without mask those of b's columns, an element per column of d. They have
  // d's type.
  bool bias_gradient = false;
};

// What a product reads and writes, on the device. All begin at multiples of 16 bytes, the workspace at
// Product::workspace_alignment.
struct ProductArrays {
  const void *a = nullptr, *b = nullptr;
  void *d = nullptr, *workspace = nullptr;
  const void* bias = nullptr;
  void* bias_gradient = nullptr;  // overwritten
  void* mask = nullptr;           // mask_bytes() of d; what is in it is the library's own
  bool accumulate = false;        // d is added to instead of overwritten (without bias, activation and mask)
};

class Product {
 public:
  static constexpr size_t workspace_alignment = 256;

  // blas: outlives this object. Throws Error where there is no algorithm.
  Product(const BlasLt& blas, const ProductSpec& spec);
  // Empty where there is none.
  static std::optional<Product> find(const BlasLt& blas, const ProductSpec& spec);

  size_t workspace_bytes() const { return workspace_bytes_; }
  static size_t mask_bytes(int64_t rows, int64_t columns);  // of a product's result
  // Queued on the compute stream.
  void run(const ProductArrays& arrays);

 private:
  struct Unplanned {};
  Product(const BlasLt& blas, const ProductSpec& spec, Unplanned);
  using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(&cublasLtMatmulDescDestroy)>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(&cublasLtMatrixLayoutDestroy)>;
  Description describe() const;
  Layout layout(const Matrix& matrix) const;
  Matrix result() const;
  bool choose_algorithm();  // false: there is none
  void point(cublasLtMatmulDescAttributes_t attribute, const void* to, const void*& described);

  const BlasLt* blas_;
  ProductSpec spec_;
  Description product_;
  Layout a_, b_, d_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t workspace_bytes_ = 0;
  const void *bias_ = nullptr, *mask_ = nullptr;  // as the descriptor has them
};

}  // namespace lockstep::cuda

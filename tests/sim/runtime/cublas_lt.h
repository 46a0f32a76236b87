// What the simulated cuBLASLt keeps of descriptors, and a product as they describe it.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::sim {

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
  const void* bias = nullptr;  // or where its gradient goes
  const void* mask = nullptr;  // a bit for each element of the result
  int64_t mask_step = 0;       // from column to column, in bits
};

// cublasLtEpilogue_t, taken apart. Without BIAS there is no bias to add, and so on.
struct Epilogue {
  explicit Epilogue(int32_t code);
  bool known;
  bool adds_bias, relu, keeps_mask, masks;
  bool sums_result, sums_a, sums_b;  // the gradient of a bias
  bool has_mask() const { return keeps_mask || masks; }
  bool has_gradient() const { return sums_result || sums_a || sums_b; }
  // Elements of the bias or of its gradient, for a result of m rows and n columns; 0: there is none.
  uint64_t bias_length(uint64_t m, uint64_t n) const { return sums_b ? n : adds_bias || has_gradient() ? m : 0; }
};

struct Sizes {
  uint64_t m, n, k;
};

cublasStatus_t wrong_product(const char* function, const std::string& what,
                             cublasStatus_t code = CUBLAS_STATUS_INVALID_VALUE);
// Shapes, types and an epilogue that belong together; what the table of the library's manual says of them.
cublasStatus_t check_product(const char* function, const Description& product, const Layout& a, const Layout& b,
                             const Layout& c, const Layout& d, Sizes& sizes);

// The product, when the stream comes to it.
struct Matmul {
  Description product;
  Layout a, b, c, d;
  Sizes sizes;
  float alpha, beta;
  const void *from_a, *from_b, *from_c;
  void *to, *workspace;
  size_t workspace_bytes;

  bool operator()() const;

 private:
  float factor(cudaDataType type, const void* from, size_t i) const;
  float finished(float sum, uint64_t m, uint64_t n) const;
  void sum_factors() const;
};

}  // namespace lockstep::sim

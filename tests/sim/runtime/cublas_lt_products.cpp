// Products of matrices without batches, from what the descriptors say. What the real library would refuse, or quietly
// compute wrong, is refused and told.
#include <cstring>
#include <vector>

#include "core/half.h"
#include "sim/runtime/calls.h"
#include "sim/runtime/cublas_lt.h"
#include "sim/runtime/tf32.h"

namespace lockstep::sim {
namespace {

float read(cudaDataType type, const void* from, size_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(from)[i];
  if (type == CUDA_R_16BF) return widen(static_cast<const Bf16*>(from)[i]);
  return widen(static_cast<const F16*>(from)[i]);
}

void write(cudaDataType type, float value, void* to, size_t i) {
  if (type == CUDA_R_32F) static_cast<float*>(to)[i] = value;
  if (type == CUDA_R_16BF) narrow(value, static_cast<Bf16*>(to)[i]);
  if (type == CUDA_R_16F) narrow(value, static_cast<F16*>(to)[i]);
}

size_t at(const Layout& layout, int32_t transposed, uint64_t row, uint64_t column) {
  return transposed == CUBLAS_OP_T ? row * static_cast<uint64_t>(layout.step) + column
                                   : column * static_cast<uint64_t>(layout.step) + row;
}

// The library's own business: the highest bit first, so that nobody gets used to another order.
uint8_t bit_of(size_t i) { return static_cast<uint8_t>(0x80 >> i % 8); }

}  // namespace

Epilogue::Epilogue(int32_t code) {
  constexpr int32_t all = CUBLASLT_EPILOGUE_RELU_AUX_BIAS | CUBLASLT_EPILOGUE_DRELU_BGRAD;
  const bool forward = (code & ~CUBLASLT_EPILOGUE_RELU_AUX_BIAS) == 0 && code != 0 &&
                       ((code & CUBLASLT_EPILOGUE_RELU) != 0 || code == CUBLASLT_EPILOGUE_BIAS);
  masks = code == CUBLASLT_EPILOGUE_DRELU || code == CUBLASLT_EPILOGUE_DRELU_BGRAD;
  sums_result = code == CUBLASLT_EPILOGUE_DRELU_BGRAD;
  sums_a = code == CUBLASLT_EPILOGUE_BGRADA;
  sums_b = code == CUBLASLT_EPILOGUE_BGRADB;
  known = code == CUBLASLT_EPILOGUE_DEFAULT || forward || masks || sums_a || sums_b;
  adds_bias = forward && (code & CUBLASLT_EPILOGUE_BIAS) != 0;
  relu = forward && (code & CUBLASLT_EPILOGUE_RELU) != 0;
  keeps_mask = forward && (code & all & 128) != 0;
}

cublasStatus_t wrong_product(const char* function, const std::string& what, cublasStatus_t code) {
  misuse(function, what);
  return code;
}

cublasStatus_t check_product(const char* function, const Description& product, const Layout& a, const Layout& b,
                             const Layout& c, const Layout& d, Sizes& sizes) {
  const auto wrong = [&](const char* what, cublasStatus_t code = CUBLAS_STATUS_INVALID_VALUE) {
    return wrong_product(function, what, code);
  };
  const bool ta = product.transpose_a == CUBLAS_OP_T, tb = product.transpose_b == CUBLAS_OP_T;
  sizes = {ta ? a.columns : a.rows, tb ? b.rows : b.columns, ta ? a.rows : a.columns};
  if ((tb ? b.columns : b.rows) != sizes.k || d.rows != sizes.m || d.columns != sizes.n || c.rows != d.rows ||
      c.columns != d.columns)
    return wrong("matrices that do not fit each other");
  for (const Layout* layout : {&a, &b, &c, &d}) {
    if (layout->rows == 0 || layout->columns == 0) return wrong("an empty matrix");
    if (layout->step < static_cast<int64_t>(layout->rows)) return wrong("columns that overlap");
  }
  const bool tf32 = product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if ((product.compute != CUBLAS_COMPUTE_32F && !tf32) || product.scale != CUDA_R_32F)
    return wrong("only fp32 sums are simulated", CUBLAS_STATUS_NOT_SUPPORTED);
  if (tf32 && a.type != CUDA_R_32F) return wrong("TF32 is for fp32 matrices", CUBLAS_STATUS_NOT_SUPPORTED);
  const bool known = a.type == CUDA_R_32F || a.type == CUDA_R_16BF || a.type == CUDA_R_16F;
  if (!known || a.type != b.type || c.type != d.type || (d.type != a.type && d.type != CUDA_R_32F))
    return wrong("no product of these types", CUBLAS_STATUS_NOT_SUPPORTED);
  const Epilogue epilogue(product.epilogue);
  if (!epilogue.known) return wrong("this epilogue is not simulated", CUBLAS_STATUS_NOT_SUPPORTED);
  if (epilogue.bias_length(1, 1) == 0 && product.bias != nullptr) return wrong("a bias that nobody reads");
  if (!epilogue.has_mask())
    return product.mask == nullptr ? CUBLAS_STATUS_SUCCESS : wrong("a mask that nobody reads or writes");
  if (product.mask_step % 128 != 0 || product.mask_step < static_cast<int64_t>(d.rows))
    return wrong("a mask whose columns are no multiple of 128 bits, or too short");
  return CUBLAS_STATUS_SUCCESS;
}

// Sums go from k to k, so that a column of the result is a loop without dependencies.
bool Matmul::operator()() const {
  if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);  // whatever lay there is lost
  const Epilogue epilogue(product.epilogue);
  std::vector<float> by_k(sizes.m * sizes.k), column(sizes.m), sums(sizes.m, 0.0F);
  for (uint64_t k = 0; k < sizes.k; ++k)
    for (uint64_t m = 0; m < sizes.m; ++m)
      by_k[k * sizes.m + m] = factor(a.type, from_a, at(a, product.transpose_a, m, k));
  if (epilogue.sums_a || epilogue.sums_b) sum_factors();
  for (uint64_t n = 0; n < sizes.n; ++n) {
    std::fill(column.begin(), column.end(), 0.0F);
    for (uint64_t k = 0; k < sizes.k; ++k) {
      const float one = factor(b.type, from_b, at(b, product.transpose_b, k, n));
      const float* row = by_k.data() + k * sizes.m;
      for (uint64_t m = 0; m < sizes.m; ++m) column[m] += row[m] * one;
    }
    for (uint64_t m = 0; m < sizes.m; ++m) {
      const float value = finished(column[m], m, n);
      if (epilogue.sums_result) sums[m] += value;
      write(d.type, value, to, at(d, CUBLAS_OP_N, m, n));
    }
  }
  if (epilogue.sums_result)
    for (uint64_t m = 0; m < sizes.m; ++m) write(d.type, sums[m], const_cast<void*>(product.bias), m);
  return true;
}

// The gradient of a bias in a weight gradient: over k, of a's rows or b's columns. As long as the result is in the
// bias's type, that is d's, whatever type the factors have.
void Matmul::sum_factors() const {
  const bool of_b = Epilogue(product.epilogue).sums_b;
  for (uint64_t i = 0; i < (of_b ? sizes.n : sizes.m); ++i) {
    float sum = 0;
    for (uint64_t k = 0; k < sizes.k; ++k)
      sum += of_b ? read(b.type, from_b, at(b, product.transpose_b, k, i))
                  : read(a.type, from_a, at(a, product.transpose_a, i, k));
    write(d.type, sum, const_cast<void*>(product.bias), i);
  }
}

float Matmul::factor(cudaDataType type, const void* from, size_t i) const {
  const float value = read(type, from, i);
  return product.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? tf32(value) : value;
}

float Matmul::finished(float sum, uint64_t m, uint64_t n) const {
  const Epilogue epilogue(product.epilogue);
  float value = alpha * sum;
  if (beta != 0) value += beta * read(c.type, from_c, at(c, CUBLAS_OP_N, m, n));
  if (epilogue.adds_bias) value += read(d.type, product.bias, m);
  const size_t bit = n * static_cast<uint64_t>(product.mask_step) + m;
  auto* mask = static_cast<uint8_t*>(const_cast<void*>(product.mask));
  if (epilogue.masks && (mask[bit / 8] & bit_of(bit)) == 0) value = 0;
  if (epilogue.keeps_mask)
    mask[bit / 8] = static_cast<uint8_t>(value > 0 ? mask[bit / 8] | bit_of(bit) : mask[bit / 8] & ~bit_of(bit));
  return epilogue.relu && value <= 0 ? 0 : value;
}

}  // namespace lockstep::sim

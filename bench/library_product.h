// A matrix product by cuBLASLt as anybody would call it, with whatever algorithm it likes: what our plans are compared
// to.
#pragma once

#include "backend/cuda/blas_lt.h"
#include "core/buffer.h"

namespace lockstep::bench {

class LibraryProduct {
 public:
  // blas: outlives this object. The first algorithm that the library names until fastest() has timed them. Throws Error
  // where there is none.
  LibraryProduct(const cuda::BlasLt& blas, const cuda::ProductSpec& spec);

  // Queued on the compute stream: d = a b.
  void run(const void* a, const void* b, void* d);
  // Takes the one of the library's proposals for which `seconds` is least: it times run().
  template <class Time>
  void fastest(const Time& seconds) {
    double best = 0;
    size_t taken = 0;
    for (size_t i = 0; i < count_; ++i) {
      taken_ = i;
      const double time = seconds();
      if (i == 0 || time < best) best = time, taken = i;
    }
    taken_ = taken;
  }

 private:
  static constexpr size_t most = 8, workspace_bytes = size_t{32} << 20;
  template <class Opaque, class Destroy>
  using Owner = std::unique_ptr<Opaque, Destroy>;
  using Layout = Owner<cublasLtMatrixLayoutOpaque_t, decltype(&cublasLtMatrixLayoutDestroy)>;
  Layout layout(DType type, int64_t rows, int64_t columns) const;

  const cuda::BlasLt& blas_;
  Owner<cublasLtMatmulDescOpaque_t, decltype(&cublasLtMatmulDescDestroy)> product_;
  Layout a_, b_, d_;
  Buffer workspace_;
  cublasLtMatmulHeuristicResult_t found_[most];
  size_t count_ = 0, taken_ = 0;
};

}  // namespace lockstep::bench

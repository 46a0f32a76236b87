// Norms that stay on the device, and what is applied from there. A sum over slices is two launches whatever their
// number, in one order that depends on the slices alone. Clipping can be recorded (step_values.h), ratios are not.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/optimizer_ops.h"
#include "backend/cuda/slice_kernels.h"
#include "backend/cuda/upload.h"
#include "backend/slice_norms.h"

namespace lockstep {
namespace {

using cuda::Chunk;
using cuda::DeviceSlice;

class CudaSliceNorms final : public SliceNorms {
 public:
  CudaSliceNorms(const cuda::Context& context, std::span<const NormSlice> slices)
      : context_(context), slices_(slices.size()) {
    std::vector<Chunk> chunks;
    std::vector<DeviceSlice> placed;
    for (const NormSlice& slice : slices) {
      placed.push_back({chunks.size(), 0, slice.weight_decay, slice.adapt});
      for (size_t at = 0; at < slice.count; at += cuda::chunk_length)
        chunks.push_back({slice.offset + at, std::min(cuda::chunk_length, slice.count - at)});
      placed.back().chunks = chunks.size() - placed.back().first_chunk;
      most_chunks_ = std::max(most_chunks_, placed.back().chunks);
      counts_.push_back(slice.count);
    }
    chunks_ = chunks.size();
    chunk_ = cuda::upload<Chunk>(context, chunks);
    slice_ = cuda::upload<DeviceSlice>(context, placed);
    sums_ = context.allocate(2 * chunks_ * sizeof(double));
    norms_ = context.allocate(2 * slices_ * sizeof(double));
    ratios_ = context.allocate(slices_ * sizeof(double));
    clip_ = context.allocate(sizeof(cuda::Clip));
    read_ = context.pinned(sizeof(cuda::Clip));
  }

  void clip(float* arena, double max_norm, double norm_type) override {
    if (context_.values().mode() == cuda::StepValues::Mode::renewing) return;  // recorded, with nothing that changes
    if (std::isinf(norm_type))
      norms(cuda::Largest{}, arena);
    else if (norm_type == 2)
      norms(cuda::Squares{}, arena);
    else if (norm_type == 1)
      norms(cuda::Magnitudes{}, arena);
    else
      norms(cuda::Powers{norm_type}, arena);
    cuda::Clip* clip = clip_.as<cuda::Clip>().data();
    cuda::launch(stream(), 1, cuda::TotalNorm{slices_, norms_.as<double>().data(), norm_type, max_norm, clip});
    cuda::launch_matrix(stream(), chunks_, cuda::chunk_length,
                        cuda::ScaleChunk{chunk_.as<Chunk>().data(), clip, arena});
  }
  float total() const override {
    context_.to_host(context_.compute(), read_.data(), clip_.data(), sizeof(cuda::Clip));
    context_.synchronize(context_.compute());
    return read_.as<cuda::Clip>()[0].total;
  }

  void lars_ratios(const float* parameters, const float* gradients, double coefficient, double eps) override {
    norms(cuda::Squares{}, parameters, gradients);
    cuda::launch(stream(), slices_,
                 cuda::LarsRatio{slices_, slice_.as<DeviceSlice>().data(), norms_.as<double>().data(), coefficient, eps,
                                 ratios_.as<double>().data()});
  }
  void lamb_ratios(const float* parameters, const float* updates) override {
    norms(cuda::Squares{}, parameters, updates);
    cuda::launch(stream(), slices_,
                 cuda::LambRatio{slices_, slice_.as<DeviceSlice>().data(), norms_.as<double>().data(),
                                 ratios_.as<double>().data()});
  }
  void sgd_by_ratio(size_t i, const SgdArgs& args, float* p, const float* g, float* momentum) override {
    if (args.weight_decay != 0) return sgd_in_mode<true>(i, args, p, g, momentum);
    sgd_in_mode<false>(i, args, p, g, momentum);
  }
  void step_by_ratio(size_t i, double lr, float* p, const float* update) override {
    cuda::launch(stream(), counts_[i], cuda::StepByRatio{lr, ratio(i), p, update});
  }

 private:
  // Threads of one block share a column, so no parts are left for a second pass.
  static cuda::ColumnShape shape_of(size_t rows, size_t columns) {
    cuda::ColumnShape shape = cuda::column_shape(rows, columns, true);
    shape.slices = 1;
    return shape;
  }
  // Of the slices of one array or of two, one after the other.
  template <class Kind>
  void norms(const Kind& kind, const float* first, const float* second = nullptr) const {
    const size_t arrays = second == nullptr ? 1 : 2;
    double *sums = sums_.as<double>().data(), *parts = nullptr;
    cuda::launch_columns(stream(), shape_of(cuda::chunk_length, arrays * chunks_),
                         cuda::OfChunk<Kind>{kind, chunks_, chunk_.as<Chunk>().data(), first, second}, parts,
                         cuda::Store{sums});
    cuda::launch_columns(stream(), shape_of(most_chunks_, arrays * slices_),
                         cuda::OfSlice<Kind>{slices_, chunks_, slice_.as<DeviceSlice>().data(), sums}, parts,
                         cuda::StoreRoot<Kind>{kind, norms_.as<double>().data()});
  }
  template <bool decay>
  void sgd_in_mode(size_t i, const SgdArgs& args, float* p, const float* g, float* momentum) const {
    const SgdScalars s = scalars(args);
    if (!s.use_momentum) return sgd<decay, SgdMode::plain>(i, args, s, p, g, momentum);
    if (s.nesterov && s.first_step) return sgd<decay, SgdMode::first_nesterov>(i, args, s, p, g, momentum);
    if (s.nesterov) return sgd<decay, SgdMode::nesterov>(i, args, s, p, g, momentum);
    if (s.first_step) return sgd<decay, SgdMode::first>(i, args, s, p, g, momentum);
    sgd<decay, SgdMode::momentum>(i, args, s, p, g, momentum);
  }
  template <bool decay, SgdMode mode>
  void sgd(size_t i, const SgdArgs& args, const SgdScalars& s, float* p, const float* g, float* momentum) const {
    using Functor = SgdUpdate<cuda::DeviceMath, decay, mode>;
    cuda::launch(stream(), counts_[i],
                 cuda::SgdByRatio<Functor>{s, args.maximize ? -1.0 : 1.0, args.weight_decay, ratio(i), p, g, momentum});
  }
  const double* ratio(size_t i) const { return ratios_.as<double>().data() + i; }
  cudaStream_t stream() const { return context_.compute().get(); }

  const cuda::Context& context_;
  size_t slices_, chunks_ = 0, most_chunks_ = 0;
  std::vector<size_t> counts_;   // of elements, by slice
  Buffer chunk_, slice_;         // what is where
  Buffer sums_, norms_;          // of two arrays
  Buffer ratios_, clip_, read_;  // read_: pinned
};

}  // namespace

std::unique_ptr<SliceNorms> CudaOptimizerOps::slice_norms(std::span<const NormSlice> slices) const {
  return std::make_unique<CudaSliceNorms>(context_, slices);
}

}  // namespace lockstep

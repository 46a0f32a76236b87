// Pool2dPlan by kernels of our own: cuDNN's know neither ceil_mode nor adaptive windows, nor PyTorch's rule for NaN.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/pool2d_kernels.h"
#include "backend/cuda/upload.h"
#include "backend/pool_geometry.h"
#include "core/error.h"

namespace lockstep::cuda {
namespace {

// An axis of windows on the device.
class Side {
 public:
  Side(Context& context, const PoolAxis& axis, int64_t in)
      : in_(static_cast<size_t>(in)), out_(axis.begin.size()), step_(axis.step) {
    for (size_t i = 0; i < out_; ++i)
      longest_ = std::max(longest_, static_cast<size_t>((axis.end[i] - axis.begin[i] - 1) / step_ + 1));
    std::vector<int32_t> all(2 * out_ + 2 * in_);
    std::ranges::copy(axis.begin, all.begin());
    std::ranges::copy(axis.end, all.begin() + static_cast<std::ptrdiff_t>(out_));
    // The first and last window over each input; those between lie over it too unless they have gaps.
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(2 * out_),
               last = first + static_cast<std::ptrdiff_t>(in_);
    for (auto i = static_cast<int32_t>(out_) - 1; i >= 0; --i)
      for (int32_t k = axis.begin[static_cast<size_t>(i)]; k < axis.end[static_cast<size_t>(i)]; k += step_) {
        first[k] = i;
        last[k] = std::max(last[k], i + 1);
      }
    places_ = upload(context, std::span<const int32_t>(all));
    divisors_ = upload(context, std::span<const float>(axis.divisor));
  }
  PoolSide get() const {
    const auto* begin = static_cast<const int32_t*>(places_.data());
    const int32_t *end = begin + out_, *first = end + out_;
    return {in_, out_, step_, begin, end, first, first + in_, static_cast<const float*>(divisors_.data())};
  }
  size_t longest() const { return longest_; }

 private:
  size_t in_, out_, longest_ = 0;  // longest: in pixels covered
  int32_t step_;
  Buffer places_, divisors_;
};

class PoolBase : public Pool2dPlan {
 public:
  PoolBase(Context& context, const Pool2dSpec& spec)
      : context_(context),
        spec_(spec),
        rows_(context, pool_axis(spec, 0), spec.input.shape[2]),
        cols_(context, pool_axis(spec, 1), spec.input.shape[3]),
        output_(spec.input) {
    const Shape& in = spec.input.shape;
    const int64_t block = spec.input.channel_block;
    if (block < 1 || in[1] % block != 0) throw_error("pooling: blocks of {} don't divide {} channels", block, in[1]);
    grid_ = {static_cast<size_t>(in[0] * in[1] / block), static_cast<size_t>(block), rows_.get(), cols_.get()};
    output_.shape = Shape{in[0], in[1], static_cast<int64_t>(grid_.rows.out), static_cast<int64_t>(grid_.cols.out)};
    constexpr size_t most = std::numeric_limits<uint32_t>::max();
    if (grid_.planes * std::max(grid_.rows.in, grid_.rows.out) > most ||
        grid_.block * std::max(grid_.cols.in, grid_.cols.out) > most || rows_.longest() * cols_.longest() > INT32_MAX)
      throw_error("pooling: an input {} is too large", in.str());
  }
  TensorDesc output() const override { return output_; }

 protected:
  bool training() const { return spec_.phase == Phase::training; }
  size_t largest_window() const { return rows_.longest() * cols_.longest(); }
  cudaStream_t stream() const { return context_.compute().get(); }

  Context& context_;
  Pool2dSpec spec_;
  Side rows_, cols_;
  PoolGrid grid_{};
  TensorDesc output_;
};

class MaxPool final : public PoolBase {
 public:
  MaxPool(Context& context, const Pool2dSpec& spec) : PoolBase(context, spec), wide_(largest_window() > 256) {}
  size_t saved_bytes() const override {
    const size_t position = wide_ ? sizeof(uint32_t) : sizeof(uint8_t);
    return training() ? static_cast<size_t>(output_.shape.numel()) * position : 0;
  }
  void forward(const void* x, void* y, void* saved) override {
    max_pool(stream(), spec_.input.dtype, grid_, x, y, training() ? saved : nullptr, wide_);
  }
  void backward(const void* dy, const void* y, void* dx, const void* saved) override {
    max_pool_backward(stream(), spec_.input.dtype, grid_, dy, spec_.mask_relu ? y : nullptr, saved, wide_, dx);
  }

 private:
  bool wide_;
};

class AveragePool final : public PoolBase {
 public:
  AveragePool(Context& context, const Pool2dSpec& spec) : PoolBase(context, spec) {
    if (spec.mask_relu) throw_error("average pooling cannot apply the mask of the ReLU before it");
  }
  void forward(const void* x, void* y, void*) override { average_pool(stream(), spec_.input.dtype, grid_, x, y); }
  void backward(const void* dy, const void*, void* dx, const void*) override {
    average_pool_backward(stream(), spec_.input.dtype, grid_, dy, dx);
  }
};

}  // namespace

std::unique_ptr<Pool2dPlan> make_pool2d(Context& context, const Pool2dSpec& spec) {
  if (spec.input.shape.rank() != 4)
    throw_error("pooling: expected an input [N, C, H, W], found {}", spec.input.shape.str());
  if (spec.kind == Pool2dSpec::Kind::max) return std::make_unique<MaxPool>(context, spec);
  return std::make_unique<AveragePool>(context, spec);
}

}  // namespace lockstep::cuda

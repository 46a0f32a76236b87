// Pooling plans: one for the 2x2 windows of most convolutional networks (a byte of position per output), one for the
// rest.
#include <array>
#include <memory>

#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/isa/pool_kernels.h"
#include "backend/cpu/pointwise.h"
#include "backend/pool_geometry.h"
#include "core/cpu_features.h"
#include "core/error.h"

namespace lockstep {

namespace {

const PoolKernels& kernels(DType type) {
  return select_isa(isa_generic::pool_kernels, isa_avx2::pool_kernels, isa_avx512::pool_kernels)[type_index(type)];
}

class PoolBase : public Pool2dPlan {
 public:
  explicit PoolBase(const Pool2dSpec& spec)
      : spec_(spec), kernels_(kernels(spec.input.dtype)), rows_(pool_axis(spec, 0)), cols_(pool_axis(spec, 1)) {
    const Shape& in = spec.input.shape;
    const auto out_height = static_cast<int64_t>(rows_.begin.size()),
               out_width = static_cast<int64_t>(cols_.begin.size());
    if (Shape{in[2], in[3]}.numel() > INT32_MAX) throw_error("pooling: planes of {} x {} are too large", in[2], in[3]);
    windows_ = {.planes = in[0] * in[1] / spec.input.channel_block,
                .block = spec.input.channel_block,
                .height = in[2],
                .width = in[3],
                .out_height = out_height,
                .out_width = out_width,
                .row_begin = rows_.begin.data(),
                .row_end = rows_.end.data(),
                .col_begin = cols_.begin.data(),
                .col_end = cols_.end.data(),
                .row_divisor = rows_.divisor.data(),
                .col_divisor = cols_.divisor.data(),
                .row_step = rows_.step,
                .col_step = cols_.step};
    output_ = spec.input;
    output_.shape = Shape{in[0], in[1], out_height, out_width};
  }
  TensorDesc output() const override { return output_; }

 protected:
  bool training() const { return spec_.phase == Phase::training; }
  size_t saved_per_output(size_t bytes) const {
    return training() ? static_cast<size_t>(output_.shape.numel()) * bytes : 0;
  }
  Pool2dSpec spec_;
  const PoolKernels& kernels_;
  PoolAxis rows_, cols_;
  PoolWindows windows_{};
  TensorDesc output_;
};

class MaxPool2x2 final : public PoolBase {
 public:
  using PoolBase::PoolBase;
  size_t saved_bytes() const override { return saved_per_output(sizeof(uint8_t)); }
  void forward(const void* x, void* y, void* saved) override {
    kernels_.max_forward_2x2(windows_, x, y, training() ? static_cast<uint8_t*>(saved) : nullptr);
  }
  void backward(const void* dy, const void* y, void* dx, const void* saved) override {
    kernels_.max_backward_2x2(windows_, dy, spec_.mask_relu ? y : nullptr, static_cast<const uint8_t*>(saved), dx);
  }
};

class MaxPool final : public PoolBase {
 public:
  using PoolBase::PoolBase;
  size_t saved_bytes() const override { return saved_per_output(sizeof(int32_t)); }
  void forward(const void* x, void* y, void* saved) override {
    kernels_.max_forward(windows_, x, y, training() ? static_cast<int32_t*>(saved) : nullptr);
  }
  void backward(const void* dy, const void* y, void* dx, const void* saved) override {
    kernels_.max_backward(windows_, dy, spec_.mask_relu ? y : nullptr, static_cast<const int32_t*>(saved), dx);
  }
};

class AveragePool final : public PoolBase {
 public:
  explicit AveragePool(const Pool2dSpec& spec) : PoolBase(spec) {
    if (spec.mask_relu) throw_error("average pooling cannot apply the mask of the ReLU before it");
  }
  void forward(const void* x, void* y, void*) override { kernels_.average_forward(windows_, x, y); }
  void backward(const void* dy, const void*, void* dx, const void*) override {
    kernels_.average_backward(windows_, dy, dx);
  }
};

// Side by side and unclipped, in a layout that has a kernel.
bool is_2x2(const Pool2dSpec& spec) {
  const Shape& in = spec.input.shape;
  const std::array<int64_t, 2> two{2, 2};
  const int64_t block = spec.input.channel_block;
  const bool unclipped = !spec.ceil_mode || (in[2] % 2 == 0 && in[3] % 2 == 0);
  return !spec.adaptive && spec.kernel == two && spec.dilation == std::array<int64_t, 2>{1, 1} && spec.stride == two &&
         spec.padding == std::array<int64_t, 2>{0, 0} && unclipped && (block == 1 || block % 8 == 0);
}

}  // namespace

std::unique_ptr<Pool2dPlan> make_cpu_pool2d(const Pool2dSpec& spec) {
  if (spec.input.shape.rank() != 4)
    throw_error("pooling: expected an input [N, C, H, W], found {}", spec.input.shape.str());
  if (spec.kind != Pool2dSpec::Kind::max) return std::make_unique<AveragePool>(spec);
  if (is_2x2(spec)) return std::make_unique<MaxPool2x2>(spec);
  return std::make_unique<MaxPool>(spec);
}

}  // namespace lockstep

// Conv2dPlan by cuDNN, channels last. The output is; an input that is not is copied. 16-bit plans keep a rounded copy
// of the fp32 weights, and add cuDNN's 16-bit weight gradients into fp32.
#include <cstdint>

#include "backend/conv2d_geometry.h"
#include "backend/cuda/bias_sums.h"
#include "backend/cuda/conv2d_kernels.h"
#include "backend/cuda/conv2d_passes.h"
#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/filter_format.h"
#include "backend/cuda/pointwise.h"
#include "core/error.h"

namespace lockstep::cuda {
namespace {

TensorDesc channels_last(TensorDesc desc) {
  desc.channel_block = desc.shape[1];
  return desc;
}

bool is_channels_last(const TensorDesc& desc) {
  const Shape& shape = desc.shape;
  return desc.channel_block == shape[1] || (desc.channel_block == 1 && shape[2] * shape[3] == 1);
}

Shape weight_shape(const Conv2dSpec& spec) {
  return {spec.out_channels, spec.input.shape[1] / spec.groups, spec.kernel[0], spec.kernel[1]};
}

// Whether the weights are stored as PyTorch has them although cuDNN reads others. Throws Error for a format of another
// plan.
bool canonical_weights(const Conv2dSpec& spec) {
  const bool alike = filter_format(weight_shape(spec)) == nullptr;
  if (!spec.stored) return false;
  if (spec.weight_format == nullptr) return !alike;
  const auto* format = dynamic_cast<const FilterFormat*>(spec.weight_format.get());
  if (format == nullptr || format->shape() != weight_shape(spec))
    throw_error("conv2d: the weights are stored in a format of another kind of plan");
  return false;
}

class CudnnConv2d final : public Conv2dPlan {
 public:
  CudnnConv2d(Context& context, Dnn& dnn, const Conv2dSpec& spec)
      : context_(context),
        spec_(spec),
        output_(channels_last({.shape = conv2d_output(spec), .channel_block = 1, .dtype = spec.input.dtype})),
        format_(spec.stored ? spec.weight_format : filter_format(weight_shape(spec))),
        filter_{static_cast<size_t>(spec.out_channels), static_cast<size_t>(weight_shape(spec)[1]),
                static_cast<size_t>(spec.kernel[0] * spec.kernel[1]), canonical_weights(spec)},
        copied_(type() != DType::f32 || filter_.canonical),
        reordered_(!is_channels_last(spec.input)),
        passes_(context, dnn, spec, output_.shape) {
    if (copied_) weights_ = context.allocate(filter_.count() * size_of(type()));
    if (passes_.fused() && !spec.bias) no_bias_ = context.allocate(channels() * size_of(type()));
    take(x_at_, reordered_ ? spec.input.bytes() : 0);
    take(bias_at_, type() != DType::f32 ? channels() * size_of(type()) : 0);
    take(gradient_at_, copied_ ? filter_.count() * size_of(type()) : 0);
    take(sums_at_, bias_sums_bytes(pixels(), channels()));
  }

  TensorDesc output() const override { return output_; }
  WeightFormatPtr weight_format() const override { return format_; }
  size_t workspace_bytes() const override { return kAlignment + end_; }

  void take_weights(const float* w, void*) override {
    if (copied_) copy_weights(stream(), filter_, w, type(), weights_.data());
  }

  void forward(const void* x, const float* w, const float* b, void* y, void* workspace) override {
    const void* read = last(x, workspace);
    if (passes_.fused()) return passes_.forward(read, weights(w), bias(b, workspace), y, at(workspace, 0));
    passes_.forward_plain(read, weights(w), y, at(workspace, 0));
    const bool relu = spec_.activation == Activation::relu;
    if (relu || b != nullptr) add_bias(stream(), type(), pixels(), channels(), b, relu, y);
  }

  void backward_data(const void* dy, const float* w, void* dx, void* workspace) override {
    void* written = reordered_ ? at(workspace, x_at_) : dx;
    passes_.backward_data(weights(w), dy, written, at(workspace, 0));
    if (reordered_) cuda_reorder(context_, channels_last(spec_.input), written, spec_.input, dx);
  }

  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    if (db != nullptr) bias_sums(context_, type(), pixels(), channels(), dy, accumulate, db, at(workspace, sums_at_));
    if (dw == nullptr) return;
    const void* read = last(x, workspace);
    if (!copied_) return passes_.backward_weights(read, dy, dw, accumulate, at(workspace, 0));
    void* gradient = at(workspace, gradient_at_);
    passes_.backward_weights(read, dy, gradient, false, at(workspace, 0));
    take_gradient(stream(), filter_, type(), gradient, accumulate, dw);
  }

 private:
  static constexpr size_t kAlignment = 256;
  // Workspace, from an aligned address on: cuDNN's, and behind it what is taken here.
  void take(size_t& place, size_t bytes) {
    if (end_ == 0) end_ = align_up(passes_.workspace_bytes(), kAlignment);
    place = end_;
    end_ += align_up(bytes, kAlignment);
  }
  static void* at(void* workspace, size_t place) {
    const auto address = reinterpret_cast<uintptr_t>(workspace);
    return static_cast<std::byte*>(workspace) + (align_up(address, kAlignment) - address) + place;
  }

  DType type() const { return spec_.input.dtype; }
  size_t channels() const { return static_cast<size_t>(spec_.out_channels); }
  size_t pixels() const { return static_cast<size_t>(output_.shape.numel() / output_.shape[1]); }
  cudaStream_t stream() const { return context_.compute().get(); }
  const void* weights(const float* w) const { return copied_ ? weights_.data() : w; }

  const void* last(const void* x, void* workspace) const {
    if (!reordered_) return x;
    cuda_reorder(context_, spec_.input, x, channels_last(spec_.input), at(workspace, x_at_));
    return at(workspace, x_at_);
  }
  // cuDNN adds a bias of the output's type.
  const void* bias(const float* b, void* workspace) const {
    if (b == nullptr) return no_bias_.data();
    if (type() == DType::f32) return b;
    cuda_convert(context_, channels(), DType::f32, b, type(), at(workspace, bias_at_));
    return at(workspace, bias_at_);
  }

  Context& context_;
  Conv2dSpec spec_;
  TensorDesc output_;
  WeightFormatPtr format_;
  FilterLayout filter_;
  bool copied_;     // the weights are read from a copy: of 16 bits, or in cuDNN's layout
  bool reordered_;  // so is the input
  ConvolutionPasses passes_;
  Buffer weights_, no_bias_;
  size_t x_at_ = 0, bias_at_ = 0, gradient_at_ = 0, sums_at_ = 0, end_ = 0;
};

}  // namespace

std::unique_ptr<Conv2dPlan> make_conv2d(Context& context, Dnn& dnn, const Conv2dSpec& spec) {
  check_conv2d(spec);
  return std::make_unique<CudnnConv2d>(context, dnn, spec);
}

}  // namespace lockstep::cuda

// Conv2dPlan by oneDNN: direct or Winograd kernels, one stored weight layout for the three passes, blocked activations
// wherever the channel counts allow it.
#include <array>
#include <limits>

#include "backend/cpu/bias_sums.h"
#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/onednn_affine.h"
#include "core/error.h"

namespace lockstep {
namespace {

using namespace onednn;

void check(const Conv2dSpec& spec) {
  const Shape& in = spec.input.shape;
  if (in.rank() != 4) throw_error("conv2d: expected an input [N, C, H, W], found {}", in.str());
  if (spec.groups < 1 || in[1] % spec.groups != 0 || spec.out_channels < 1 || spec.out_channels % spec.groups != 0)
    throw_error("conv2d: {} groups don't divide {} input and {} output channels", spec.groups, in[1],
                spec.out_channels);
  if (spec.activation != Activation::none && spec.activation != Activation::relu)
    throw_error("conv2d: only relu can be fused");
  for (size_t axis = 0; axis < 2; ++axis)
    if (spec.kernel[axis] < 1 || spec.stride[axis] < 1 || spec.dilation[axis] < 1 || spec.padding[axis] < 0)
      throw_error("conv2d: kernel, stride and dilation must be positive and padding not negative");
}

Shape output_shape(const Conv2dSpec& spec) {
  const Shape& in = spec.input.shape;
  std::array<int64_t, 2> size{};
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<size_t>(axis);
    const int64_t window = spec.dilation[a] * (spec.kernel[a] - 1) + 1, padded = in[2 + axis] + 2 * spec.padding[a];
    if (padded < window) throw_error("conv2d: a kernel spanning {} doesn't fit into {} pixels", window, padded);
    size[a] = (padded - window) / spec.stride[a] + 1;
  }
  return Shape{in[0], spec.out_channels, size[0], size[1]};
}

std::vector<int64_t> weight_dims(const Conv2dSpec& spec) {
  const int64_t in = spec.input.shape[1] / spec.groups, out = spec.out_channels / spec.groups;
  if (spec.groups == 1) return {out, in, spec.kernel[0], spec.kernel[1]};
  return {spec.groups, out, in, spec.kernel[0], spec.kernel[1]};
}

// Every layout that a TensorDesc can name, and last whatever the library likes best (converted inside the plan).
std::vector<MemoryDesc> layouts(TensorDesc desc) {
  std::vector<MemoryDesc> all;
  for (const int64_t block : channel_blocks(desc.shape[1])) {
    desc.channel_block = block;
    all.push_back(activation_layout(desc));
  }
  all.emplace_back(desc.shape.dims(), dnnl_format_tag_any);
  return all;
}

// Winograd trades multiplications for transformations of the weights and of both activations. Measured with version
// 2.6.3 for 16..512 channels and 16..16384 pixels: from 32 channels and 1024 output pixels on it mostly takes 0.55-0.9
// of the direct kernels' time in all three passes, below it up to 18 times as long. A rule, not a timing at start: the
// bits of a result must not depend on how busy the machine was.
bool winograd_pays(const Conv2dSpec& spec, const Shape& output) {
  return spec.input.shape[1] >= 32 && spec.out_channels >= 32 && output[0] * output[2] * output[3] >= 1024;
}

class OnednnConv2d final : public Conv2dPlan {
 public:
  OnednnConv2d(const Conv2dSpec& spec, const CpuOptions& options)
      : passes_(context_, choose(spec, options)), bias_sums_(output_) {}

  TensorDesc output() const override { return output_; }
  WeightFormatPtr weight_format() const override { return format_; }
  size_t workspace_bytes() const override { return passes_.workspace_bytes(); }
  void forward(const float* x, const float* w, const float* b, float* y, void* workspace) override {
    passes_.forward(x, w, b, y, workspace);
  }
  void backward_data(const float* dy, const float* w, float* dx, void* workspace) override {
    passes_.backward_data(dy, w, dx, workspace);
  }
  void backward_weights(const float* x, const float* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    if (dw == nullptr) return bias_sums_.run(dy, db, accumulate);
    passes_.backward_weights(x, dy, dw, db, accumulate, workspace);
  }

 private:
  PassMaker maker(const Conv2dSpec& spec, dnnl_alg_kind_t algorithm, const MemoryDesc& bias) const;
  AffineChoice choose(const Conv2dSpec& spec, const CpuOptions& options);

  Context context_;
  TensorDesc output_;
  WeightFormatPtr format_;
  AffinePasses passes_;
  BiasSums bias_sums_;
};

PassMaker OnednnConv2d::maker(const Conv2dSpec& spec, dnnl_alg_kind_t algorithm, const MemoryDesc& bias) const {
  const ConvolutionGeometry g{algorithm, spec.stride, spec.padding, spec.dilation};
  const bool relu = spec.activation == Activation::relu, training = spec.phase == Phase::training;
  return [context = context_, g, bias, relu, training](Pass pass, const MemoryDesc& src, const MemoryDesc& weights,
                                                       const MemoryDesc& dst) {
    const PrimitiveDesc forward = convolution_forward(context, g, src, weights, bias, dst, training, relu);
    if (pass == Pass::forward || !forward) return forward;
    // The forward pass a backward one is told of may keep its weights otherwise.
    if (pass == Pass::backward_data) return convolution_backward_data(context, g, src, weights, dst, forward);
    return convolution_backward_weights(context, g, src, weights, bias, dst, forward);
  };
}

AffineChoice OnednnConv2d::choose(const Conv2dSpec& spec, const CpuOptions& options) {
  check(spec);
  output_ = TensorDesc{.shape = output_shape(spec), .channel_block = 1, .dtype = spec.input.dtype};
  const std::vector<int64_t> weights = weight_dims(spec);
  const MemoryDesc canonical(weights, spec.groups == 1 ? dnnl_oihw : dnnl_goihw);
  AffineProblem problem;
  problem.x = activation_layout(spec.input);
  if (spec.bias) problem.bias = MemoryDesc(std::array{spec.out_channels}, dnnl_a);
  problem.srcs = layouts(spec.input);
  problem.any_weights = MemoryDesc(weights, dnnl_format_tag_any);
  if (spec.stored) problem.stored = stored_layout(spec.weight_format, canonical);
  const bool training = spec.phase == Phase::training;
  problem.backward_weights = training && spec.weight_gradient;
  problem.backward_data = training && spec.input_gradient;
  if (options.winograd && winograd_pays(spec, output_.shape))
    problem.makers.push_back(maker(spec, dnnl_convolution_winograd, problem.bias));
  problem.makers.push_back(maker(spec, dnnl_convolution_direct, problem.bias));

  // The output is free: try each block, then what the library likes best with a plain output.
  AffineChoice best;
  best.cost = std::numeric_limits<double>::infinity();
  for (const int64_t block : channel_blocks(spec.out_channels)) {
    TensorDesc output = output_;
    output.channel_block = block;
    problem.y = activation_layout(output);
    problem.dsts = block == 1 ? layouts(output) : std::vector{problem.y};
    const AffineChoice choice = choose_affine(problem);
    if (choice.cost < best.cost) {
      best = choice;
      output_ = output;
    }
  }
  format_ = onednn::weight_format(context_, canonical, best.weights);
  return best;
}

}  // namespace

std::unique_ptr<Conv2dPlan> make_cpu_conv2d(const Conv2dSpec& spec, const CpuOptions& options) {
  return std::make_unique<OnednnConv2d>(spec, options);
}

}  // namespace lockstep

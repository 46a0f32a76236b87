// Conv2dPlan by oneDNN: direct or Winograd kernels, one stored weight layout for the three passes, blocked activations
// wherever the channel counts allow it.
#include <algorithm>
#include <array>
#include <limits>

#include "backend/conv2d_geometry.h"
#include "backend/cpu/bias_sums.h"
#include "backend/cpu/converting_affine.h"
#include "backend/cpu/cpu_plans.h"
#include "backend/cpu/onednn_affine.h"

namespace lockstep {
namespace {

using namespace onednn;

std::vector<int64_t> weight_dims(const Conv2dSpec& spec) {
  const int64_t in = spec.input.shape[1] / spec.groups, out = spec.out_channels / spec.groups;
  if (spec.groups == 1) return {out, in, spec.kernel[0], spec.kernel[1]};
  return {spec.groups, out, in, spec.kernel[0], spec.kernel[1]};
}

// The channel blocks an activation may have, the preferred first. AMX kernels want channels last.
std::vector<int64_t> blocks_of(const TensorDesc& desc, const CpuOptions& options) {
  const int64_t channels = desc.shape[1];
  std::vector<int64_t> blocks = channel_blocks(channels);
  if (desc.dtype == DType::f32 || std::ranges::find(blocks, channels) != blocks.end()) return blocks;
  blocks.insert(bf16_products(options) == Bf16Products::amx ? blocks.begin() : blocks.end() - 1, channels);
  return blocks;
}

// Every layout that a TensorDesc can name, and last whatever the library likes best (converted inside the plan).
std::vector<MemoryDesc> layouts(TensorDesc desc, const CpuOptions& options) {
  std::vector<MemoryDesc> all;
  for (const int64_t block : blocks_of(desc, options)) {
    desc.channel_block = block;
    all.push_back(activation_layout(desc));
  }
  all.emplace_back(desc.shape.dims(), dnnl_format_tag_any, desc.dtype);
  return all;
}

// Winograd trades multiplications for transformations of the weights and of both activations. Measured with version
// 2.6.3 for 16..512 channels and 16..16384 pixels: from 32 channels and 1024 output pixels on it mostly takes 0.55-0.9
// of the direct kernels' time in all three passes, below it up to 18 times as long. A rule, not a timing at start: the
// bits of a result must not depend on how busy the machine was.
bool winograd_pays(const Conv2dSpec& spec, const Shape& output) {
  return spec.input.shape[1] >= 32 && spec.out_channels >= 32 && output[0] * output[2] * output[3] >= 1024;
}

struct Chosen {
  AffineChoice passes;
  TensorDesc output;
  WeightFormatPtr format;
};

class OnednnConv2d final : public Conv2dPlan {
 public:
  OnednnConv2d(const Context& context, const Chosen& chosen)
      : output_(chosen.output), format_(chosen.format), passes_(context, chosen.passes), bias_sums_(output_) {}

  TensorDesc output() const override { return output_; }
  WeightFormatPtr weight_format() const override { return format_; }
  size_t workspace_bytes() const override { return passes_.workspace_bytes(); }
  void take_weights(const float* w, void* workspace) override { passes_.take_weights(w, workspace); }
  void forward(const void* x, const float* w, const float* b, void* y, void* workspace) override {
    passes_.forward(x, w, b, y, workspace);
  }
  void backward_data(const void* dy, const float* w, void* dx, void* workspace) override {
    passes_.backward_data(dy, w, dx, workspace);
  }
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                        void* workspace) override {
    if (dw == nullptr) return bias_sums_.run(dy, db, accumulate);
    passes_.backward_weights(x, dy, dw, db, accumulate, workspace);
  }

 private:
  TensorDesc output_;
  WeightFormatPtr format_;
  AffinePasses passes_;
  BiasSums bias_sums_;
};

PassMaker maker(const Context& context, const Conv2dSpec& spec, dnnl_alg_kind_t algorithm,
                const AffineProblem& problem) {
  const ConvolutionGeometry g{algorithm, spec.stride, spec.padding, spec.dilation};
  const bool relu = spec.activation == Activation::relu, training = spec.phase == Phase::training;
  return [context, g, relu, training, bias = problem.bias, any = problem.any_weights, type = problem.type](
             Pass pass, const MemoryDesc& src, const MemoryDesc& weights, const MemoryDesc& dst) {
    // The forward pass a backward one is told of may keep its weights otherwise, and in another type.
    const MemoryDesc& read = pass == Pass::backward_weights && type != DType::f32 ? any : weights;
    const PrimitiveDesc forward = convolution_forward(context, g, src, read, bias, dst, training, relu);
    if (pass == Pass::forward || !forward) return forward;
    if (pass == Pass::backward_data) return convolution_backward_data(context, g, src, weights, dst, forward);
    return convolution_backward_weights(context, g, src, weights, bias, dst, forward);
  };
}

Chosen choose(const Context& context, const Conv2dSpec& spec, const CpuOptions& options) {
  Chosen chosen;
  chosen.output = TensorDesc{.shape = conv2d_output(spec), .channel_block = 1, .dtype = spec.input.dtype};
  const std::vector<int64_t> weights = weight_dims(spec);
  AffineProblem problem;
  problem.type = spec.input.dtype;
  problem.x = activation_layout(spec.input);
  if (spec.bias) problem.bias = MemoryDesc(std::array{spec.out_channels}, dnnl_a);
  problem.srcs = layouts(spec.input, options);
  problem.any_weights = MemoryDesc(weights, dnnl_format_tag_any, problem.type);
  problem.any_gradient = MemoryDesc(weights, dnnl_format_tag_any);
  problem.canonical_weights = MemoryDesc(weights, spec.groups == 1 ? dnnl_oihw : dnnl_goihw);
  if (spec.stored) problem.stored = stored_layout(spec.weight_format, problem.canonical_weights);
  const bool training = spec.phase == Phase::training;
  problem.backward_weights = training && spec.weight_gradient;
  problem.backward_data = training && spec.input_gradient;
  if (problem.type == DType::f32 && options.winograd && winograd_pays(spec, chosen.output.shape))
    problem.makers.push_back(maker(context, spec, dnnl_convolution_winograd, problem));
  problem.makers.push_back(maker(context, spec, dnnl_convolution_direct, problem));

  // The output is free: try each block, then what the library likes best with a plain output.
  chosen.passes.cost = std::numeric_limits<double>::infinity();
  TensorDesc output = chosen.output;
  for (const int64_t block : blocks_of(output, options)) {
    output.channel_block = block;
    problem.y = activation_layout(output);
    problem.dsts = block == 1 ? layouts(output, options) : std::vector{problem.y};
    const AffineChoice choice = choose_affine(problem);
    if (choice.cost < chosen.passes.cost) {
      chosen.passes = choice;
      chosen.output = output;
    }
  }
  chosen.format = weight_format(problem.canonical_weights, chosen.passes.weights);
  return chosen;
}

std::unique_ptr<Conv2dPlan> make_converting(const Conv2dSpec& spec, const CpuOptions& options) {
  Conv2dSpec wide = spec;
  wide.input.dtype = DType::f32;
  const auto weights = static_cast<size_t>(Shape(weight_dims(spec)).numel());
  return std::make_unique<ConvertingAffine<Conv2dPlan>>(make_cpu_conv2d(wide, options), spec.input, weights);
}

}  // namespace

std::unique_ptr<Conv2dPlan> make_cpu_conv2d(const Conv2dSpec& spec, const CpuOptions& options) {
  check_conv2d(spec);
  const bool f32 = spec.input.dtype == DType::f32;
  if (!f32 && (spec.input.dtype != DType::bf16 || bf16_products(options) == Bf16Products::converted))
    return make_converting(spec, options);
  const Context context;
  const Chosen chosen = choose(context, spec, options);
  // A reference loop is slower than two conversions.
  if (!f32 && chosen.passes.cost >= kReferenceCost) return make_converting(spec, options);
  return std::make_unique<OnednnConv2d>(context, chosen);
}

}  // namespace lockstep

#include "backend/cuda/conv2d_passes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "core/error.h"

namespace lockstep::cuda {
namespace {

constexpr float one = 1, zero = 0;

// What differs between the passes when an algorithm is looked for.
template <class Perf, class Algorithm, size_t Count>
struct Search {
  static constexpr int count = static_cast<int>(Count);
  using PerfType = Perf;
  std::function<cudnnStatus_t(int* found, Perf* perfs)> candidates;
  std::function<cudnnStatus_t(Algorithm, size_t* bytes)> workspace;
  std::function<cudnnStatus_t()> run;  // on the scratch arrays, with what is set in the pass
};
using ForwardSearch =
    Search<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT>;
using DataSearch =
    Search<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>;
using WeightsSearch = Search<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t,
                             CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>;

}  // namespace

struct ConvolutionPasses::Scratch {
  Buffer x, y, w, bias, workspace;
};

ConvolutionPasses::Pass ConvolutionPasses::make_pass(const Conv2dSpec& spec) const {
  cudnnConvolutionDescriptor_t made = nullptr;
  dnn_.check(f_.create_convolution(&made), "cudnnCreateConvolutionDescriptor");
  Pass pass{.convolution = ConvolutionDescriptor(made, f_.destroy_convolution)};
  const auto of = [](const std::array<int64_t, 2>& pair, size_t axis) { return static_cast<int>(pair[axis]); };
  dnn_.check(f_.set_convolution(made, of(spec.padding, 0), of(spec.padding, 1), of(spec.stride, 0), of(spec.stride, 1),
                                of(spec.dilation, 0), of(spec.dilation, 1), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
             "cudnnSetConvolution2dDescriptor");
  dnn_.check(f_.set_groups(made, static_cast<int>(spec.groups)), "cudnnSetConvolutionGroupCount");
  dnn_.check(f_.set_math(made, base_math()), "cudnnSetConvolutionMathType");
  return pass;
}

// fp32 products are fp32's: by default cuDNN would round them for tensor cores.
cudnnMathType_t ConvolutionPasses::base_math() const {
  if (type_ != DType::f32) return CUDNN_TENSOR_OP_MATH;
  return dnn_.options().tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

// Whether an algorithm can do it. Throws Error for other failures than that it can't.
bool ConvolutionPasses::done(cudnnStatus_t status, const char* what) const {
  const int category = CUDNN_STATUS_CATEGORY(status);
  if (category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM) return false;
  dnn_.check(status, what);
  return true;
}

template <class Search>
void ConvolutionPasses::choose(Pass& pass, Scratch& scratch, const char* name, const Search& search) const {
  const ConvolutionOptions& options = dnn_.options();
  std::array<typename Search::PerfType, static_cast<size_t>(Search::count)> perfs{};
  int found = 0;
  dnn_.check(search.candidates(&found, perfs.data()), fmt::format("choosing an algorithm for {}", name).c_str());
  for (const auto& perf : std::span(perfs).first(static_cast<size_t>(std::clamp(found, 0, Search::count)))) {
    if (perf.status != CUDNN_STATUS_SUCCESS) continue;
    if (options.deterministic && perf.determinism != CUDNN_DETERMINISTIC) continue;
    const cudnnMathType_t math = base_math() == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : perf.mathType;
    dnn_.check(f_.set_math(pass.convolution.get(), math), "cudnnSetConvolutionMathType");
    if (!done(search.workspace(perf.algo, &pass.workspace), name)) continue;
    if (pass.workspace > options.workspace_limit) continue;
    if (scratch.workspace.bytes() < pass.workspace) scratch.workspace = context_.allocate(pass.workspace);
    pass.algorithm = static_cast<int>(perf.algo);
    if (!done(search.run(), name)) continue;
    context_.synchronize(context_.compute());  // what the GPU met is thrown here
    return;
  }
  throw_error("conv2d: cuDNN has no {}algorithm of {} bytes of workspace or less for {}",
              options.deterministic ? "deterministic " : "", options.workspace_limit, name);
}

ConvolutionPasses::ConvolutionPasses(const Context& context, Dnn& dnn, const Conv2dSpec& spec, const Shape& output)
    : context_(context),
      dnn_(dnn),
      f_(dnn.functions()),
      handle_(dnn.handle()),
      type_(spec.input.dtype),
      x_(tensor(dnn, type_, spec.input.shape)),
      y_(tensor(dnn, type_, output)),
      bias_(tensor(dnn, type_, Shape{1, spec.out_channels, 1, 1})),
      w_(filter(dnn, type_,
                Shape{spec.out_channels, spec.input.shape[1] / spec.groups, spec.kernel[0], spec.kernel[1]})),
      activation_(activation(dnn, spec.activation == Activation::relu)) {
  const size_t element = size_of(type_);
  const auto weights =
      static_cast<size_t>(spec.out_channels * (spec.input.shape[1] / spec.groups) * spec.kernel[0] * spec.kernel[1]);
  Scratch scratch{.x = context.allocate(spec.input.bytes()),
                  .y = context.allocate(static_cast<size_t>(output.numel()) * element),
                  .w = context.allocate(weights * element),
                  .bias = context.allocate(static_cast<size_t>(spec.out_channels) * element),
                  .workspace = context.allocate(dnn.options().measure ? dnn.options().workspace_limit : 0)};
  plan_forward(spec, scratch);
  const bool training = spec.phase == Phase::training;
  if (training && spec.input_gradient) plan_data(spec, scratch);
  if (training && spec.weight_gradient) plan_weights(spec, scratch);
}

void ConvolutionPasses::plan_forward(const Conv2dSpec& spec, Scratch& s) {
  forward_ = make_pass(spec);
  const cudnnConvolutionDescriptor_t c = forward_.convolution.get();
  const bool relu = spec.activation == Activation::relu, bias = spec.bias;
  ForwardSearch search;
  search.candidates = [&, c](int* found, cudnnConvolutionFwdAlgoPerf_t* perfs) {
    if (!dnn_.options().measure)
      return f_.forward_heuristics(handle_, x_.get(), w_.get(), c, y_.get(), search.count, found, perfs);
    return f_.forward_measure(handle_, x_.get(), s.x.data(), w_.get(), s.w.data(), c, y_.get(), s.y.data(),
                              search.count, found, perfs, s.workspace.data(), s.workspace.bytes());
  };
  search.workspace = [&, c](cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
    return f_.forward_workspace(handle_, x_.get(), w_.get(), c, y_.get(), algorithm, bytes);
  };
  search.run = [&] {
    // Without ReLU only this algorithm adds a bias.
    const bool fusible = relu || (bias && forward_.algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
    fused_ = fusible && done(run_fused(s.x.data(), s.w.data(), s.bias.data(), s.y.data(), s.workspace.data()),
                             "cudnnConvolutionBiasActivationForward");
    return fused_ ? CUDNN_STATUS_SUCCESS : run_plain(s.x.data(), s.w.data(), s.y.data(), s.workspace.data());
  };
  choose(forward_, s, "cudnnConvolutionForward", search);
}

void ConvolutionPasses::plan_data(const Conv2dSpec& spec, Scratch& s) {
  data_ = make_pass(spec);
  const cudnnConvolutionDescriptor_t c = data_.convolution.get();
  DataSearch search;
  search.candidates = [&, c](int* found, cudnnConvolutionBwdDataAlgoPerf_t* perfs) {
    if (!dnn_.options().measure)
      return f_.data_heuristics(handle_, w_.get(), y_.get(), c, x_.get(), search.count, found, perfs);
    return f_.data_measure(handle_, w_.get(), s.w.data(), y_.get(), s.y.data(), c, x_.get(), s.x.data(), search.count,
                           found, perfs, s.workspace.data(), s.workspace.bytes());
  };
  search.workspace = [&, c](cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
    return f_.data_workspace(handle_, w_.get(), y_.get(), c, x_.get(), algorithm, bytes);
  };
  search.run = [&] { return run_data(s.w.data(), s.y.data(), s.x.data(), s.workspace.data()); };
  choose(data_, s, "cudnnConvolutionBackwardData", search);
}

void ConvolutionPasses::plan_weights(const Conv2dSpec& spec, Scratch& s) {
  weights_ = make_pass(spec);
  const cudnnConvolutionDescriptor_t c = weights_.convolution.get();
  WeightsSearch search;
  search.candidates = [&, c](int* found, cudnnConvolutionBwdFilterAlgoPerf_t* perfs) {
    if (!dnn_.options().measure)
      return f_.filter_heuristics(handle_, x_.get(), y_.get(), c, w_.get(), search.count, found, perfs);
    return f_.filter_measure(handle_, x_.get(), s.x.data(), y_.get(), s.y.data(), c, w_.get(), s.w.data(), search.count,
                             found, perfs, s.workspace.data(), s.workspace.bytes());
  };
  search.workspace = [&, c](cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
    return f_.filter_workspace(handle_, x_.get(), y_.get(), c, w_.get(), algorithm, bytes);
  };
  search.run = [&] { return run_weights(s.x.data(), s.y.data(), s.w.data(), 0, s.workspace.data()); };
  choose(weights_, s, "cudnnConvolutionBackwardFilter", search);
}

size_t ConvolutionPasses::workspace_bytes() const {
  return std::max({forward_.workspace, data_.workspace, weights_.workspace});
}

// y is named as the array to be added, too, and added zero times.
cudnnStatus_t ConvolutionPasses::run_fused(const void* x, const void* w, const void* bias, void* y,
                                           void* workspace) const {
  return f_.bias_activation_forward(handle_, &one, x_.get(), x, w_.get(), w, forward_.convolution.get(),
                                    static_cast<cudnnConvolutionFwdAlgo_t>(forward_.algorithm), workspace,
                                    forward_.workspace, &zero, y_.get(), y, bias_.get(), bias, activation_.get(),
                                    y_.get(), y);
}

cudnnStatus_t ConvolutionPasses::run_plain(const void* x, const void* w, void* y, void* workspace) const {
  return f_.forward(handle_, &one, x_.get(), x, w_.get(), w, forward_.convolution.get(),
                    static_cast<cudnnConvolutionFwdAlgo_t>(forward_.algorithm), workspace, forward_.workspace, &zero,
                    y_.get(), y);
}

cudnnStatus_t ConvolutionPasses::run_data(const void* w, const void* dy, void* dx, void* workspace) const {
  return f_.backward_data(handle_, &one, w_.get(), w, y_.get(), dy, data_.convolution.get(),
                          static_cast<cudnnConvolutionBwdDataAlgo_t>(data_.algorithm), workspace, data_.workspace,
                          &zero, x_.get(), dx);
}

cudnnStatus_t ConvolutionPasses::run_weights(const void* x, const void* dy, void* dw, float beta,
                                             void* workspace) const {
  return f_.backward_filter(handle_, &one, x_.get(), x, y_.get(), dy, weights_.convolution.get(),
                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(weights_.algorithm), workspace,
                            weights_.workspace, &beta, w_.get(), dw);
}

void ConvolutionPasses::forward(const void* x, const void* w, const void* bias, void* y, void* workspace) const {
  dnn_.check(run_fused(x, w, bias, y, workspace), "cudnnConvolutionBiasActivationForward");
}
void ConvolutionPasses::forward_plain(const void* x, const void* w, void* y, void* workspace) const {
  dnn_.check(run_plain(x, w, y, workspace), "cudnnConvolutionForward");
}
void ConvolutionPasses::backward_data(const void* w, const void* dy, void* dx, void* workspace) const {
  dnn_.check(run_data(w, dy, dx, workspace), "cudnnConvolutionBackwardData");
}
void ConvolutionPasses::backward_weights(const void* x, const void* dy, void* dw, bool accumulate,
                                         void* workspace) const {
  dnn_.check(run_weights(x, dy, dw, accumulate ? 1.0F : 0.0F, workspace), "cudnnConvolutionBackwardFilter");
}

}  // namespace lockstep::cuda

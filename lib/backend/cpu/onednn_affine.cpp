#include "backend/cpu/onednn_affine.h"

#include <algorithm>
#include <limits>

#include "backend/cpu/pointwise.h"
#include "core/buffer.h"
#include "core/error.h"

namespace lockstep::onednn {

namespace {

// Relative to cost(): a copy of the weights is small, one of an activation costs less than a slower kernel.
constexpr double kWeightCopy = 0.25, kActivationCopy = 1;
// Of a bf16 kernel that leaves AMX alone (where there is none, all of them do).
constexpr double kWithoutAmx = 0.5;

struct PassChoice {
  PrimitiveDesc desc;
  double cost = std::numeric_limits<double>::infinity();
};

// Layouts to try. bf16 weights are a copy in any case, so the pass may choose; their gradient is fp32 as stored.
std::vector<MemoryDesc> weight_layouts(const AffineProblem& problem, Pass pass, const MemoryDesc& stored) {
  if (pass == Pass::backward_weights) return {stored, problem.any_gradient};
  if (problem.type == DType::f32) return {stored, problem.any_weights};
  return {problem.any_weights};
}

PassChoice choose_pass(const AffineProblem& problem, Pass pass, int weights_arg, const MemoryDesc& src,
                       const MemoryDesc& weights, const MemoryDesc& dst) {
  PassChoice best;
  for (const PassMaker& maker : problem.makers) {
    for (const MemoryDesc& layout : weight_layouts(problem, pass, weights)) {
      PassChoice candidate{.desc = maker(pass, src, layout, dst), .cost = 0};
      candidate.cost = cost(candidate.desc);
      if (candidate.desc && candidate.desc.argument(weights_arg) != weights) candidate.cost += kWeightCopy;
      if (candidate.desc && problem.type != DType::f32 &&
          candidate.desc.implementation().find("amx") == std::string::npos)
        candidate.cost += kWithoutAmx;
      if (candidate.cost < best.cost) best = candidate;
    }
  }
  return best;
}

// The stored layout where the plan is free: forward's in fp32, else the gradient's, so that neither is ever converted.
MemoryDesc preferred_weights(const AffineProblem& problem, const PrimitiveDesc& forward, const MemoryDesc& src,
                             const MemoryDesc& dst) {
  if (problem.type == DType::f32) return forward.argument(DNNL_ARG_WEIGHTS);
  if (!problem.backward_weights) return problem.canonical_weights;
  const PrimitiveDesc pass = problem.makers.back()(Pass::backward_weights, src, problem.any_gradient, dst);
  return pass ? pass.argument(DNNL_ARG_DIFF_WEIGHTS) : problem.canonical_weights;
}

AffineChoice choose_for(const AffineProblem& problem, const MemoryDesc& wanted_src, const MemoryDesc& wanted_dst) {
  AffineChoice choice{.x = problem.x,
                      .y = problem.y,
                      .src = {},
                      .dst = {},
                      .weights = problem.stored,
                      .bias = problem.bias,
                      .forward = {},
                      .backward_data = {},
                      .backward_weights = {},
                      .cost = 0};
  const PrimitiveDesc free = problem.makers.back()(Pass::forward, wanted_src, problem.any_weights, wanted_dst);
  if (!free) return choice.cost = std::numeric_limits<double>::infinity(), choice;
  choice.src = free.argument(DNNL_ARG_SRC);
  choice.dst = free.argument(DNNL_ARG_DST);
  if (!choice.weights) choice.weights = preferred_weights(problem, free, choice.src, choice.dst);
  const auto pick = [&](Pass pass, int weights_arg) {
    const PassChoice picked = choose_pass(problem, pass, weights_arg, choice.src, choice.weights, choice.dst);
    choice.cost += picked.cost;
    return picked.desc;
  };
  choice.forward = pick(Pass::forward, DNNL_ARG_WEIGHTS);
  if (problem.backward_data) choice.backward_data = pick(Pass::backward_data, DNNL_ARG_WEIGHTS);
  if (problem.backward_weights) choice.backward_weights = pick(Pass::backward_weights, DNNL_ARG_DIFF_WEIGHTS);
  if (choice.src != choice.x) choice.cost += kActivationCopy;
  if (choice.dst != choice.y) choice.cost += kActivationCopy;
  return choice;
}

}  // namespace

AffineChoice choose_affine(const AffineProblem& problem) {
  AffineChoice best;
  best.cost = std::numeric_limits<double>::infinity();
  for (const MemoryDesc& src : problem.srcs)
    for (const MemoryDesc& dst : problem.dsts) {
      const AffineChoice choice = choose_for(problem, src, dst);
      if (choice.cost < best.cost) best = choice;
    }
  return best;
}

AffinePasses::AffinePasses(const Context& context, const AffineChoice& c)
    : weight_count_(c.weights.bytes() / sizeof(float)), bias_count_(c.bias.bytes() / sizeof(float)) {
  if (!c.forward) throw_error("oneDNN has no implementation of this operation for these shapes");
  size_t x_bytes = 0, y_bytes = 0, w_bytes = 0, scratchpad = 0;
  const auto convert = [&](const MemoryDesc& from, const MemoryDesc& to, size_t& piece, const MemoryDesc& inner) {
    Conversion conversion(context, from, to);
    if (conversion.needed()) {
      piece = std::max(piece, inner.bytes());
      scratchpad = std::max(scratchpad, conversion.scratchpad_bytes());
    }
    return conversion;
  };
  const auto make = [&](const PrimitiveDesc& desc, std::vector<int> args, int bias_arg) {
    if (c.bias && bias_arg != 0) args.push_back(bias_arg);
    Primitive primitive(context, desc, args);
    scratchpad = std::max(scratchpad, primitive.scratchpad_bytes());
    return primitive;
  };
  forward_ = make(c.forward, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, DNNL_ARG_BIAS);
  const MemoryDesc forward_weights = c.forward.argument(DNNL_ARG_WEIGHTS);
  x_in_ = convert(c.x, c.src, x_bytes, c.src);
  y_out_ = convert(c.dst, c.y, y_bytes, c.dst);
  w_forward_ = PassWeights(context, c.weights, forward_weights);
  scratchpad = std::max(scratchpad, w_forward_.scratchpad_bytes());
  if (c.backward_data || c.backward_weights) dy_in_ = convert(c.y, c.dst, y_bytes, c.dst);
  if (c.backward_data) {
    backward_data_ = make(c.backward_data, {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST}, 0);
    const MemoryDesc weights = c.backward_data.argument(DNNL_ARG_WEIGHTS);
    one_copy_ = weights == forward_weights;
    if (!one_copy_) w_backward_data_ = PassWeights(context, c.weights, weights);
    scratchpad = std::max(scratchpad, w_backward_data_.scratchpad_bytes());
    dx_out_ = convert(c.src, c.x, x_bytes, c.src);
  }
  if (c.backward_weights) {
    backward_weights_ =
        make(c.backward_weights, {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}, DNNL_ARG_DIFF_BIAS);
    const MemoryDesc weights = c.backward_weights.argument(DNNL_ARG_DIFF_WEIGHTS);
    w_bytes = weights.bytes();  // to accumulate, or to convert
    dw_out_ = convert(weights, c.weights, w_bytes, weights);
  }
  const auto place = [this](size_t bytes) {
    const size_t offset = workspace_bytes_;
    workspace_bytes_ += align_up(bytes);
    return offset;
  };
  x_at_ = place(x_bytes);
  y_at_ = place(y_bytes);
  w_at_ = place(w_bytes);
  dw_at_ = place(dw_out_.needed() ? c.weights.bytes() : 0);
  db_at_ = place(c.backward_weights ? c.bias.bytes() : 0);
  scratchpad_at_ = place(scratchpad);
}

static void* at(void* workspace, size_t offset) { return static_cast<std::byte*>(workspace) + offset; }
static float* floats_at(void* workspace, size_t offset) { return static_cast<float*>(at(workspace, offset)); }

const void* AffinePasses::converted(Conversion& conversion, const void* from, size_t offset, void* workspace) {
  if (!conversion.needed()) return from;
  void* copy = at(workspace, offset);
  conversion.run(from, copy, at(workspace, scratchpad_at_));
  return copy;
}

void AffinePasses::take_weights(const float* w, void* workspace) {
  w_forward_.take(w, at(workspace, scratchpad_at_));
  w_backward_data_.take(w, at(workspace, scratchpad_at_));
}

void AffinePasses::forward(const void* x, const float* w, const float* b, void* y, void* workspace) {
  const void* src = converted(x_in_, x, x_at_, workspace);
  const void* weights = w_forward_.get(w);
  void* dst = y_out_.needed() ? at(workspace, y_at_) : y;
  if (bias_count_ > 0) {
    forward_.run({src, weights, dst, b}, at(workspace, scratchpad_at_));
  } else {
    forward_.run({src, weights, dst}, at(workspace, scratchpad_at_));
  }
  if (y_out_.needed()) y_out_.run(dst, y, at(workspace, scratchpad_at_));
}

void AffinePasses::backward_data(const void* dy, const float* w, void* dx, void* workspace) {
  const void* diff_dst = converted(dy_in_, dy, y_at_, workspace);
  const void* weights = one_copy_ ? w_forward_.get(w) : w_backward_data_.get(w);
  void* diff_src = dx_out_.needed() ? at(workspace, x_at_) : dx;
  backward_data_.run({diff_src, weights, diff_dst}, at(workspace, scratchpad_at_));
  if (dx_out_.needed()) dx_out_.run(diff_src, dx, at(workspace, scratchpad_at_));
}

void AffinePasses::backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                                    void* workspace) {
  const void* src = converted(x_in_, x, x_at_, workspace);
  const void* diff_dst = converted(dy_in_, dy, y_at_, workspace);
  float* diff_weights = accumulate || dw_out_.needed() ? floats_at(workspace, w_at_) : dw;
  float* diff_bias = accumulate || db == nullptr ? floats_at(workspace, db_at_) : db;  // null: computed along, not kept
  if (bias_count_ > 0) {
    backward_weights_.run({src, diff_weights, diff_dst, diff_bias}, at(workspace, scratchpad_at_));
  } else {
    backward_weights_.run({src, diff_weights, diff_dst}, at(workspace, scratchpad_at_));
  }
  if (dw_out_.needed()) {
    float* target = accumulate ? floats_at(workspace, dw_at_) : dw;
    dw_out_.run(diff_weights, target, at(workspace, scratchpad_at_));
    diff_weights = target;
  }
  if (!accumulate) return;
  pointwise_kernels().add(weight_count_, dw, diff_weights, dw);
  if (bias_count_ > 0 && db != nullptr) pointwise_kernels().add(bias_count_, db, diff_bias, db);
}

}  // namespace lockstep::onednn

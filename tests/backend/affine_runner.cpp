#include "backend/affine_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/buffer.h"

namespace lockstep::test {

namespace {

// Index in the blocked layout of canonical element (n, c, s).
size_t blocked_index(const TensorDesc& desc, int64_t n, int64_t c, int64_t s, int64_t spatial) {
  const int64_t channels = desc.shape[1], block = desc.channel_block;
  return static_cast<size_t>(((n * (channels / block) + c / block) * spatial + s) * block + c % block);
}

template <class Visit>
void for_each(const TensorDesc& desc, const Visit& visit) {
  const int64_t batch = desc.shape[0], channels = desc.shape[1];
  const int64_t spatial = desc.shape.rank() == 4 ? desc.shape[2] * desc.shape[3] : 1;
  size_t canonical = 0;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t s = 0; s < spatial; ++s) visit(canonical++, blocked_index(desc, n, c, s, spatial));
}

constexpr size_t kGuard = 64;
constexpr float kSentinel = -12345.5F;

// Aligned floats with a guard zone behind them.
class Guarded {
 public:
  Guarded(size_t count, float fill) : count_(count), buffer_(Buffer::host((count + kGuard) * sizeof(float))) {
    std::ranges::fill(all(), kSentinel);
    std::ranges::fill(span(), fill);
  }
  std::span<float> span() const { return all().first(count_); }
  float* data() const { return all().data(); }
  bool intact() const {
    return std::ranges::all_of(all().subspan(count_, kGuard), [](float value) { return value == kSentinel; });
  }

 private:
  std::span<float> all() const { return buffer_.as<float>(); }
  size_t count_;
  Buffer buffer_;
};

std::vector<float> load(const WeightFormatPtr& format, std::span<const float> stored, size_t count) {
  std::vector<float> canonical(count);
  if (format) {
    format->load(stored, canonical);
  } else {
    std::ranges::copy(stored, canonical.begin());
  }
  return canonical;
}

// Storing what was loaded again gives the same numbers only if everything outside the canonical elements is zero.
bool padding_is_zero(const WeightFormatPtr& format, std::span<const float> stored, std::span<const float> canonical) {
  if (!format) return true;
  Guarded again(stored.size(), 0);
  format->store(canonical, again.span());
  return std::ranges::equal(again.span(), stored);
}

}  // namespace

std::vector<float> to_layout(const TensorDesc& desc, std::span<const float> canonical) {
  std::vector<float> out(canonical.size());
  for_each(desc, [&](size_t from, size_t to) { out[to] = canonical[from]; });
  return out;
}

std::vector<float> from_layout(const TensorDesc& desc, std::span<const float> values) {
  std::vector<float> out(values.size());
  for_each(desc, [&](size_t to, size_t from) { out[to] = values[from]; });
  return out;
}

template <class AffinePlan>
AffineResult run_affine(AffinePlan& plan, const AffineRun& run) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const WeightFormatPtr format = plan.weight_format();
  const size_t weights = format ? format->stored_count() : run.w.size();
  const TensorDesc output = plan.output();
  const auto out_count = static_cast<size_t>(output.shape.numel());
  Guarded x(run.x.size(), 0), y(out_count, kNan), dx(run.x.size(), kNan), dy(out_count, 0);
  Guarded w(weights, 0), dw(weights, kNan), b(run.b.size(), 0), db(run.b.size(), kNan);
  Guarded workspace(plan.workspace_bytes() / sizeof(float), kNan);
  std::ranges::copy(to_layout(run.input, run.x), x.data());
  std::ranges::copy(run.b, b.data());
  if (format) {
    format->store(run.w, w.span());
  } else {
    std::ranges::copy(run.w, w.data());
  }
  const std::vector<float> w_before(w.span().begin(), w.span().end());

  AffineResult result;
  plan.forward(x.data(), w.data(), run.bias ? b.data() : nullptr, y.data(), workspace.data());
  result.y = from_layout(output, y.span());
  if (run.backward) {
    std::ranges::copy(to_layout(output, run.dy), dy.data());
    float* bias_gradient = run.bias ? db.data() : nullptr;
    std::ranges::fill(workspace.span(), kNan);  // nothing may survive between calls
    plan.backward_weights(x.data(), dy.data(), dw.data(), bias_gradient, false, workspace.data());
    if (run.accumulate) {
      std::ranges::fill(workspace.span(), kNan);
      plan.backward_weights(x.data(), dy.data(), dw.data(), bias_gradient, true, workspace.data());
    }
    result.dw = load(format, dw.span(), run.w.size());
    if (run.bias) result.db.assign(db.span().begin(), db.span().end());
    if (!padding_is_zero(format, dw.span(), result.dw)) result.broken += "gradient padding is not zero; ";
    if (run.input_gradient) {
      std::ranges::fill(workspace.span(), kNan);
      plan.backward_data(dy.data(), w.data(), dx.data(), workspace.data());
      result.dx = from_layout(run.input, dx.span());
    }
  }
  if (!std::ranges::equal(w.span(), w_before)) result.broken += "weights changed; ";
  for (const Guarded* buffer : {&x, &y, &dx, &dy, &w, &dw, &b, &db, &workspace})
    if (!buffer->intact()) result.broken += "wrote behind a buffer; ";
  return result;
}

template AffineResult run_affine(Conv2dPlan& plan, const AffineRun& run);
template AffineResult run_affine(LinearPlan& plan, const AffineRun& run);

}  // namespace lockstep::test

#include "backend/affine_runner.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/pointwise.h"
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

// Aligned memory, filled with one byte, with a guard zone behind it.
class Guarded {
 public:
  static constexpr int kZero = 0, kNan = 0xff;  // a NaN in every floating-point type
  Guarded(size_t bytes, int fill) : bytes_(bytes), buffer_(Buffer::host(bytes + kGuard)) {
    std::ranges::fill(all(), kSentinel);
    this->fill(fill);
  }
  void fill(int byte) { std::memset(data(), byte, bytes_); }
  std::span<float> floats() const { return buffer_.as<float>().first(bytes_ / sizeof(float)); }
  void* data() const { return buffer_.data(); }
  float* f32() const { return static_cast<float*>(data()); }
  bool intact() const {
    return std::ranges::all_of(all().subspan(bytes_, kGuard), [](std::byte b) { return b == kSentinel; });
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr std::byte kSentinel{0x5a};
  std::span<std::byte> all() const { return buffer_.as<std::byte>(); }
  size_t bytes_;
  Buffer buffer_;
};

TensorDesc plain(TensorDesc desc) {
  desc.channel_block = 1;
  desc.dtype = DType::f32;
  return desc;
}

std::vector<float> canonical_values(const TensorDesc& desc, const Guarded& stored) {
  std::vector<float> values(static_cast<size_t>(desc.shape.numel()));
  reorder_channels(desc, stored.data(), plain(desc), values.data());
  return values;
}

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
  Guarded again(stored.size_bytes(), Guarded::kZero);
  format->store(canonical, again.floats());
  return std::ranges::equal(again.floats(), stored);
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
  const WeightFormatPtr format = plan.weight_format();
  const size_t weight_bytes = (format ? format->stored_count() : run.w.size()) * sizeof(float);
  const TensorDesc output = plan.output();
  const size_t bias_bytes = run.b.size_bytes();
  Guarded x(run.input.bytes(), Guarded::kZero), y(output.bytes(), Guarded::kNan);
  Guarded dx(run.input.bytes(), Guarded::kNan), dy(output.bytes(), Guarded::kZero);
  Guarded w(weight_bytes, Guarded::kZero), dw(weight_bytes, Guarded::kNan);
  Guarded b(bias_bytes, Guarded::kZero), db(bias_bytes, Guarded::kNan);
  Guarded workspace(plan.workspace_bytes(), Guarded::kNan);
  reorder_channels(plain(run.input), run.x.data(), run.input, x.data());
  std::ranges::copy(run.b, b.f32());
  if (format) {
    format->store(run.w, w.floats());
  } else {
    std::ranges::copy(run.w, w.f32());
  }
  const std::vector<float> w_before(w.floats().begin(), w.floats().end());

  AffineResult result;
  plan.take_weights(w.f32(), workspace.data());
  workspace.fill(Guarded::kNan);  // nothing may survive in it between calls
  plan.forward(x.data(), w.f32(), run.bias ? b.f32() : nullptr, y.data(), workspace.data());
  result.y = canonical_values(output, y);
  if (run.backward) {
    reorder_channels(plain(output), run.dy.data(), output, dy.data());
    float* bias_gradient = run.bias ? db.f32() : nullptr;
    workspace.fill(Guarded::kNan);
    plan.backward_weights(x.data(), dy.data(), dw.f32(), bias_gradient, false, workspace.data());
    if (run.accumulate) {
      workspace.fill(Guarded::kNan);
      plan.backward_weights(x.data(), dy.data(), dw.f32(), bias_gradient, true, workspace.data());
    }
    result.dw = load(format, dw.floats(), run.w.size());
    if (run.bias) result.db.assign(db.floats().begin(), db.floats().end());
    if (!padding_is_zero(format, dw.floats(), result.dw)) result.broken += "gradient padding is not zero; ";
    if (run.input_gradient) {
      workspace.fill(Guarded::kNan);
      plan.backward_data(dy.data(), w.f32(), dx.data(), workspace.data());
      result.dx = canonical_values(run.input, dx);
    }
  }
  if (!std::ranges::equal(w.floats(), w_before)) result.broken += "weights changed; ";
  for (const Guarded* buffer : {&x, &y, &dx, &dy, &w, &dw, &b, &db, &workspace})
    if (!buffer->intact()) result.broken += "wrote behind a buffer; ";
  return result;
}

template AffineResult run_affine(Conv2dPlan& plan, const AffineRun& run);
template AffineResult run_affine(LinearPlan& plan, const AffineRun& run);

}  // namespace lockstep::test

#include "sim/conv2d_runner.h"

#include <algorithm>

#include "core/half.h"
#include "support/oracle.h"

namespace lockstep::test {
namespace {

struct Data {
  std::vector<float> x, w, b, dy;  // canonical
  std::vector<float> stored_w;
};

Data data(const Conv2dPlan& plan, const Conv2dSpec& spec) {
  const auto count = [](const Shape& shape) { return static_cast<size_t>(shape.numel()); };
  const Shape weight{spec.out_channels, spec.input.shape[1] / spec.groups, spec.kernel[0], spec.kernel[1]};
  Data d{.x = oracle::random_floats(count(spec.input.shape), 1),
         .w = oracle::random_floats(count(weight), 2),
         .b = oracle::random_floats(static_cast<size_t>(spec.out_channels), 3),
         .dy = oracle::random_floats(count(plan.output().shape), 4)};
  if (spec.input.dtype != DType::f32)  // what a 16-bit plan adds is a bias of 16 bits on a GPU
    for (float& value : d.b) {
      F16 half{};
      Bf16 brain{};
      narrow(value, brain), narrow(value, half);
      value = spec.input.dtype == DType::bf16 ? widen(brain) : widen(half);
    }
  if (!spec.bias) d.b.clear();
  d.stored_w = d.w;
  if (const WeightFormatPtr format = plan.weight_format()) {
    d.stored_w.assign(format->stored_count(), 0);
    format->store(d.w, d.stored_w);
  }
  return d;
}

std::vector<float> loaded(const Conv2dPlan& plan, const std::vector<float>& stored, size_t count) {
  const WeightFormatPtr format = plan.weight_format();
  if (format == nullptr) return stored;
  std::vector<float> values(count);
  format->load(stored, values);
  return values;
}

}  // namespace

Conv2dResult run_on_cpu(Conv2dPlan& plan, const Conv2dSpec& spec, const Conv2dRun& run) {
  const Data d = data(plan, spec);
  const TensorDesc out = plan.output();
  const Bytes x = stored(spec.input, d.x), dy = stored(out, d.dy);
  Bytes y(out.bytes()), dx(spec.input.bytes());
  const Buffer workspace = Buffer::host(plan.workspace_bytes() + 1);
  std::vector<float> dw(d.stored_w.size()), db(d.b.size());
  plan.take_weights(d.stored_w.data(), workspace.data());
  plan.forward(x.data(), d.stored_w.data(), d.b.empty() ? nullptr : d.b.data(), y.data(), workspace.data());
  Conv2dResult r{.y = canonical(out, y), .dx = {}, .dw = {}, .db = {}};
  if (!run.backward) return r;
  for (int i = 0; i < (run.accumulate ? 2 : 1); ++i)
    plan.backward_weights(x.data(), dy.data(), run.weight_gradient ? dw.data() : nullptr,
                          run.bias_gradient && spec.bias ? db.data() : nullptr, i > 0, workspace.data());
  if (run.input_gradient) {
    plan.backward_data(dy.data(), d.stored_w.data(), dx.data(), workspace.data());
    r.dx = canonical(spec.input, dx);
  }
  r.dw = loaded(plan, dw, d.w.size());
  r.db = db;
  return r;
}

Conv2dResult run_on_gpu(GpuArrays& gpu, Conv2dPlan& plan, const Conv2dSpec& spec, const Conv2dRun& run) {
  const Data d = data(plan, spec);
  const TensorDesc out = plan.output();
  const void *x = gpu.put(stored(spec.input, d.x)), *dy = gpu.put(stored(out, d.dy));
  void *y = gpu.make(out.bytes()), *dx = gpu.make(spec.input.bytes());
  const float *w = gpu.put(d.stored_w), *b = gpu.put(d.b);
  float *dw = gpu.floats(d.stored_w.size()), *db = gpu.floats(d.b.size());
  const auto workspace = [&] {
    return static_cast<std::byte*>(gpu.make(plan.workspace_bytes() + 64)) + 64;
  };  // as of an arena
  plan.take_weights(w, workspace());
  plan.forward(x, w, b, y, workspace());
  Conv2dResult r{.y = canonical(out, gpu.get_bytes(y, out.bytes())), .dx = {}, .dw = {}, .db = {}};
  r.workspace_bytes = plan.workspace_bytes();
  if (!run.backward) return r;
  for (int i = 0; i < (run.accumulate ? 2 : 1); ++i)
    plan.backward_weights(x, dy, run.weight_gradient ? dw : nullptr, run.bias_gradient ? db : nullptr, i > 0,
                          workspace());
  if (run.input_gradient) {
    plan.backward_data(dy, w, dx, workspace());
    r.dx = canonical(spec.input, gpu.get_bytes(dx, spec.input.bytes()));
  }
  r.dw = loaded(plan, gpu.get(dw, d.stored_w.size()), d.w.size());
  r.db = gpu.get(db, d.b.size());
  return r;
}

}  // namespace lockstep::test

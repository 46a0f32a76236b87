// What the GPU does element by element beside the CPU: copies, activations, dropout, the updates of all optimizers.
#include <doctest/doctest.h>

#include <limits>

#include "backend/slice_norms.h"
#include "gpu/operation.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<Floats> activation(Device& device, Activation kind, DType type) {
  const auto plan = device.backend().plan_activation({.count = n, .dtype = type, .kind = kind});
  const TensorDesc desc = desc_of(kImage, type);
  void *x = device.put(normal(n, 1), desc), *dy = device.put(normal(n, 2), desc);
  void *y = device.make(desc.bytes()), *dx = device.make(desc.bytes());
  plan->forward(x, y);
  plan->backward(x, y, dy, dx);
  return {device.get(y, desc), device.get(dx, desc)};
}

// The parameters and the state after an update of `state` arrays.
std::vector<Floats> update(
    Device& device,
    const std::function<void(const OptimizerOps&, float* p, const float* g, const std::vector<float*>& state)>& step,
    size_t state) {
  float *p = device.put(normal(n, 1)), *g = device.put(normal(n, 2));
  std::vector<float*> arrays;
  for (size_t i = 0; i < state; ++i) {
    Floats positive = normal(n, static_cast<uint32_t>(3 + i));
    for (float& value : positive) value = std::abs(value);
    arrays.push_back(device.put(positive));
  }
  step(device.backend().optimizer_ops(), p, g, arrays);
  std::vector<Floats> all{device.get(p, n)};
  for (const float* array : arrays) all.push_back(device.get(array, n));
  return all;
}

}  // namespace

TEST_CASE("a megabyte goes to the GPU and comes back unchanged") {
  const auto gpu = make_backend("cuda", {}, {.index = 0});
  Device device(*gpu);
  const Floats sent = normal(1 << 18, 9);
  CHECK(device.get(device.put(sent), sent.size()) == sent);
}

TEST_CASE("pointwise operations on the GPU are those of the CPU") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(name(type));
    const TensorDesc desc = desc_of(kImage, type);
    const auto with = [&](const char* name, const std::function<void(Backend&, void*, void*, void*)>& call) {
      compare({name, kSame, [&](Device& device) -> std::vector<Floats> {
                 void *a = device.put(normal(n, 1), desc), *b = device.put(normal(n, 2), desc);
                 void* y = device.make(desc.bytes());
                 call(device.backend(), a, b, y);
                 return {device.get(y, desc)};
               }});
    };
    with("copy", [&](Backend& on, void* a, void*, void* y) { on.copy(type, n, a, y); });
    with("add", [&](Backend& on, void* a, void* b, void* y) { on.add(type, n, a, b, y); });
    with("relu_mask", [&](Backend& on, void* a, void* b, void* y) { on.relu_mask(type, n, a, b, y); });
  }
  compare({"fill", kSame, [](Device& device) -> std::vector<Floats> {
             float* y = device.zeros(n);
             device.backend().fill(n, 1.5F, y);
             return {device.get(y, n)};
           }});
  compare({"reorder", kSame, [](Device& device) -> std::vector<Floats> {
             const TensorDesc last{.shape = kImage, .channel_block = 8, .dtype = DType::bf16};
             return {device.get(device.put(normal(n, 1), last), last)};
           }});
}

TEST_CASE("activations and softmax and dropout on the GPU are those of the CPU") {
  using enum Activation;
  for (const Activation kind : {relu, leaky_relu, gelu, gelu_tanh, Activation::tanh, sigmoid}) {
    CAPTURE(static_cast<int>(kind));
    compare({"activation", kSums, [&](Device& device) { return activation(device, kind, DType::f32); }});
  }
  for (const DType type : {DType::bf16, DType::f16})
    compare({"relu in 16 bits", kSame, [&](Device& device) { return activation(device, relu, type); }});
  compare({"softmax", kSums, [](Device& device) -> std::vector<Floats> {
             const auto plan = device.backend().plan_softmax({.outer = 3, .axis = 8, .inner = 42});
             float *y = device.zeros(n), *dx = device.zeros(n);
             plan->forward(device.put(normal(n, 1)), y);
             plan->backward(y, device.put(normal(n, 2)), dx);
             return {device.get(y, n), device.get(dx, n)};
           }});
  compare({"dropout", kSame, [](Device& device) -> std::vector<Floats> {
             const auto plan = device.backend().plan_dropout({.count = n, .p = 0.3});
             float *y = device.zeros(n), *dx = device.zeros(n);
             void* saved = device.make(plan->saved_bytes());
             plan->forward(device.put(normal(n, 1)), y, {42}, saved);
             plan->backward(device.put(normal(n, 2)), dx, saved);
             return {device.get(y, n), device.get(dx, n)};
           }});
}

TEST_CASE("updates of every optimizer on the GPU are those of the CPU") {
  using Arrays = std::vector<float*>;
  const auto with = [](const char* name, size_t state, const auto& step) {
    compare({name, kSums, [&](Device& device) { return update(device, step, state); }});
  };
  with("sgd", 1, [](const OptimizerOps& ops, float* p, const float* g, const Arrays& s) {
    ops.sgd({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, n, p, g, s[0]);
  });
  with("adam", 3, [](const OptimizerOps& ops, float* p, const float* g, const Arrays& s) {
    ops.adam({.weight_decay = 0.01, .decoupled = true, .amsgrad = true, .t = 3}, n, p, g, s[0], s[1], s[2]);
  });
  with("lamb direction", 3, [](const OptimizerOps& ops, float* p, const float* g, const Arrays& s) {
    ops.lamb_direction({.weight_decay = 0.01, .t = 3}, n, p, g, s[0], s[1], s[2]);
  });
  with("adadelta", 2, [](const OptimizerOps& ops, float* p, const float* g, const Arrays& s) {
    ops.adadelta({}, n, p, g, s[0], s[1]);
  });
  with("rmsprop", 2, [](const OptimizerOps& ops, float* p, const float* g, const Arrays& s) {
    ops.rmsprop({.momentum = 0.9}, n, p, g, s[0], nullptr, s[1]);
  });
  with("adagrad", 1, [](const OptimizerOps& ops, float* p, const float* g, const Arrays& s) {
    ops.adagrad({.t = 3}, n, p, g, s[0]);
  });
  with("scale, add, clamp, lerp and swap", 2, [](const OptimizerOps& ops, float* p, const float* g, const Arrays& s) {
    ops.scale(n, p, 0.5F), ops.add(n, g, p), ops.clamp(n, p, 1.25F), ops.lerp(n, s[0], p, 0.3F), ops.swap(n, p, s[1]);
  });
  compare({"sums", kSums, [](Device& device) -> std::vector<Floats> {
             const OptimizerOps& ops = device.backend().optimizer_ops();
             const float* x = device.put(normal(n, 1));
             const double sums[] = {ops.sum_of_squares(n, x), ops.sum_of_abs(n, x), ops.sum_of_powers(n, x, 3)};
             return {Floats(std::begin(sums), std::end(sums)), {ops.max_abs(n, x)}};
           }});
}

TEST_CASE("clipping and trust ratios on the GPU are those of the CPU") {
  const std::vector<NormSlice> slices{{0, n, 0.01}, {n, 7, 0}, {n + 16, 20'000, 0.02}};
  constexpr size_t arena = n + 16 + 20'000;
  for (const double type : {2.0, 1.0, 3.0, std::numeric_limits<double>::infinity()})
    compare({"clipping", kSums, [&](Device& device) -> std::vector<Floats> {
               const auto norms = device.backend().optimizer_ops().slice_norms(slices);
               float* x = device.put(normal(arena, 1));
               norms->clip(x, 0.5, type);
               return {device.get(x, arena), {norms->total()}};
             }});
  compare({"LARS", kSums, [&](Device& device) -> std::vector<Floats> {
             const auto norms = device.backend().optimizer_ops().slice_norms(slices);
             float *p = device.put(normal(arena, 1)), *g = device.put(normal(arena, 2)), *m = device.zeros(arena);
             norms->lars_ratios(p, g, 1e-3, 1e-8);
             for (size_t i = 0; i < slices.size(); ++i) {
               const size_t at = slices[i].offset;
               norms->sgd_by_ratio(i, {.lr = 0.1, .momentum = 0.9, .weight_decay = slices[i].weight_decay}, p + at,
                                   g + at, m + at);
             }
             return {device.get(p, arena), device.get(m, arena)};
           }});
  compare({"LAMB", kSums, [&](Device& device) -> std::vector<Floats> {
             const auto norms = device.backend().optimizer_ops().slice_norms(slices);
             float *p = device.put(normal(arena, 1)), *u = device.put(normal(arena, 2));
             norms->lamb_ratios(p, u);
             for (size_t i = 0; i < slices.size(); ++i)
               norms->step_by_ratio(i, 0.1, p + slices[i].offset, u + slices[i].offset);
             return {device.get(p, arena)};
           }});
}

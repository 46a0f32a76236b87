// Every plan of the GPU that sums beside the CPU's: convolutions, linear layers, pooling, normalisations, losses.
#include <doctest/doctest.h>

#include "gpu/operation.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// Linear layers and convolutions have one interface: output, input gradient, weight and bias gradients.
template <class Plan>
std::vector<Floats> affine(Device& device, Plan& plan, const TensorDesc& input, size_t weights, size_t out) {
  const WeightFormatPtr format = plan.weight_format();
  const auto outputs = static_cast<size_t>(plan.output().shape.numel());
  const auto inputs = static_cast<size_t>(input.shape.numel());
  void* workspace = device.make(plan.workspace_bytes());
  void *x = device.put(normal(inputs, 1), input), *dy = device.put(normal(outputs, 2), plan.output());
  void *y = device.make(plan.output().bytes()), *dx = device.make(input.bytes());
  float *w = device.put_weights(normal(weights, 3), format), *dw = device.put_weights(normal(weights, 4), format);
  float *b = device.put(normal(out, 5)), *db = device.put(normal(out, 6));
  plan.take_weights(w, workspace);
  plan.forward(x, w, b, y, workspace);
  plan.backward_data(dy, w, dx, workspace);
  plan.backward_weights(x, dy, dw, db, true, workspace);
  return {device.get(y, plan.output()), device.get(dx, input), device.get_weights(dw, weights, format),
          device.get(db, out)};
}

std::vector<Floats> convolution(Device& device, const Conv2dSpec& spec) {
  const auto plan = device.backend().plan_conv2d(spec);
  const int64_t weights = spec.out_channels * spec.input.shape[1] / spec.groups * spec.kernel[0] * spec.kernel[1];
  return affine(device, *plan, spec.input, static_cast<size_t>(weights), static_cast<size_t>(spec.out_channels));
}

std::vector<Floats> linear(Device& device, const LinearSpec& spec) {
  const auto plan = device.backend().plan_linear(spec);
  const int64_t weights = spec.out_features * spec.input.shape.without_front().numel();
  return affine(device, *plan, spec.input, static_cast<size_t>(weights), static_cast<size_t>(spec.out_features));
}

std::vector<Floats> pooling(Device& device, const Pool2dSpec& spec) {
  const auto plan = device.backend().plan_pool2d(spec);
  const auto outputs = static_cast<size_t>(plan->output().shape.numel());
  void *x = device.put(normal(n, 1), spec.input), *dy = device.put(normal(outputs, 2), plan->output());
  void *y = device.make(plan->output().bytes()), *dx = device.make(spec.input.bytes());
  void* saved = device.make(plan->saved_bytes());
  plan->forward(x, y, saved);
  plan->backward(dy, y, dx, saved);
  return {device.get(y, plan->output()), device.get(dx, spec.input)};
}

// y, dx, dweight, dbias of layer and group norm.
template <class Plan>
std::vector<Floats> normalisation(Device& device, Plan& plan, size_t channels) {
  float *x = device.put(normal(n, 1)), *dy = device.put(normal(n, 2)), *y = device.zeros(n), *dx = device.zeros(n);
  float *w = device.put(normal(channels, 3)), *b = device.put(normal(channels, 4));
  float *dw = device.zeros(channels), *db = device.zeros(channels);
  void *saved = device.make(plan.saved_bytes()), *workspace = device.make(plan.workspace_bytes());
  plan.forward(x, w, b, y, saved);
  plan.backward(x, dy, w, dx, dw, db, false, saved, workspace);
  return {device.get(y, n), device.get(dx, n), device.get(dw, channels), device.get(db, channels)};
}

std::vector<Floats> batch_norm(Device& device) {
  constexpr size_t channels = 8;
  const auto plan = device.backend().plan_batch_norm({.input = desc_of(kImage)});
  float *x = device.put(normal(n, 1)), *dy = device.put(normal(n, 2)), *y = device.zeros(n), *dx = device.zeros(n);
  float *w = device.put(normal(channels, 3)), *b = device.put(normal(channels, 4));
  float *dw = device.zeros(channels), *db = device.zeros(channels);
  float *mean = device.zeros(channels), *variance = device.zeros(channels), *batches = device.zeros(1);
  void *saved = device.make(plan->saved_bytes()), *workspace = device.make(plan->workspace_bytes());
  plan->forward(x, w, b, mean, variance, batches, y, saved);
  plan->backward(x, dy, w, dx, dw, db, false, saved, workspace);
  return {device.get(y, n),         device.get(dx, n),          device.get(dw, channels),
          device.get(db, channels), device.get(mean, channels), device.get(variance, channels)};
}

std::vector<Floats> loss(Device& device, const LossSpec& spec) {
  constexpr int64_t rows = 21, classes = 6;
  const TensorDesc dense = desc_of(Shape{rows, classes});
  const auto plan = device.backend().plan_loss(spec, rows, classes);
  float *x = device.put(normal(rows * classes, 1)), *dx = device.zeros(rows * classes);
  TensorView target{device.put(normal(rows * classes, 2)), dense};
  if (spec.kind == LossSpec::Kind::cross_entropy) {
    std::vector<int64_t> labels(rows);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 7 == 3 ? -100 : static_cast<int64_t>(i % 6);
    target = {device.put(labels), {Shape{rows}, 1, DType::i64}};
  }
  plan->add_forward_backward({x, dense}, target, 0.25, dx, true);
  plan->send_sums();
  const LossSums sums = plan->take_sums();
  return {device.get(dx, rows * classes), {static_cast<float>(sums.loss)}, {static_cast<float>(sums.weight)}};
}

}  // namespace

TEST_CASE("convolutions and linear layers on the GPU are those of the CPU") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(name(type));
    const TensorDesc image = desc_of(kImage, type);
    Conv2dSpec conv{.input = image, .out_channels = 16, .kernel = {3, 3}, .padding = {1, 1}};
    compare({"conv2d", tolerance_of(type), [&](Device& device) { return convolution(device, conv); }});
    conv.activation = Activation::relu, conv.stride = {2, 2}, conv.groups = 2;
    compare({"conv2d with relu, stride and groups", tolerance_of(type),
             [&](Device& device) { return convolution(device, conv); }});
    const LinearSpec layer{.input = desc_of(Shape{32, 24}, type), .out_features = 16};
    compare({"linear", tolerance_of(type), [&](Device& device) { return linear(device, layer); }});
    LinearSpec fused = layer;
    fused.activation = Activation::relu;
    compare({"linear with relu", tolerance_of(type), [&](Device& device) { return linear(device, fused); }});
  }
}

TEST_CASE("pooling and normalisations on the GPU are those of the CPU") {
  using Kind = Pool2dSpec::Kind;
  for (const Kind kind : {Kind::max, Kind::average, Kind::average_exclude_padding}) {
    const Pool2dSpec spec{
        .input = desc_of(kImage), .kind = kind, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    compare({"pool2d", kSums, [&](Device& device) { return pooling(device, spec); }});
  }
  compare({"adaptive pool2d", kSums, [](Device& device) {
             return pooling(device, {.input = desc_of(kImage), .kind = Kind::average, .adaptive = true});
           }});
  compare({"batch_norm", 1e-5, batch_norm});
  compare({"layer_norm", 1e-5, [](Device& device) {
             const auto plan = device.backend().plan_layer_norm({.outer = 24, .inner = 42});
             return normalisation(device, *plan, 42);
           }});
  compare({"group_norm", 1e-5, [](Device& device) {
             const auto plan = device.backend().plan_group_norm({.input = desc_of(kImage), .groups = 4});
             return normalisation(device, *plan, 8);
           }});
}

TEST_CASE("losses on the GPU are those of the CPU") {
  using enum LossSpec::Kind;
  for (const LossSpec::Kind kind : {cross_entropy, mse, l1, smooth_l1, bce_with_logits}) {
    CAPTURE(static_cast<int>(kind));
    compare({"loss", kSums, [&](Device& device) { return loss(device, {.kind = kind}); }});
  }
  compare({"cross entropy with class weights and smoothing", kSums, [](Device& device) {
             return loss(device, {.label_smoothing = 0.1, .class_weights = {1, 2, 3, 1, 2, 3}});
           }});
}

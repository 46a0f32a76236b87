// The GPU's losses beside the CPU's: sums to rounding, gradients to the last digits of a float.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backend/backend.h"
#include "backend/cuda/loss.h"
#include "core/error.h"
#include "sim/device_arrays.h"
#include "sim/runtime/control.h"

using namespace lockstep;
using test::download;

namespace {

constexpr int64_t rows = 37, classes = 5;
constexpr size_t n = rows * classes;

std::vector<float> normal(uint32_t seed, float mean, float deviation) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw(mean, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = draw(engine);
  return values;
}

std::vector<float> probabilities() {
  std::vector<float> values = normal(9, 0, 1);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    float sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += values[row * classes + c] = std::abs(values[row * classes + c]);
    for (size_t c = 0; c < classes; ++c) values[row * classes + c] /= sum;
  }
  return values;
}

std::vector<int64_t> labels() {
  std::vector<int64_t> values(rows);
  for (size_t row = 0; row < values.size(); ++row) values[row] = row % 7 == 3 ? -100 : static_cast<int64_t>(row % 5);
  return values;
}

template <class T>
Buffer on_gpu(cuda::Context& context, const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  Buffer device = context.allocate(bytes);
  const Buffer host = context.pinned(bytes);
  std::memcpy(host.data(), values.data(), bytes);
  context.to_device(context.compute(), device.data(), host.data(), bytes);
  context.synchronize(context.compute());
  return device;
}

void compare(const LossSpec& spec, const std::vector<float>* dense, std::vector<int64_t>* indices) {
  sim::reset({});
  cuda::Context context(0);
  std::vector<float> x = normal(1, 0, 3), expected_gradient(n),
                     wanted = dense == nullptr ? std::vector<float>() : *dense;
  const TensorDesc dense_desc{Shape{rows, classes}}, label_desc{Shape{rows}, 1, DType::i64};
  const TensorDesc& target_desc = dense != nullptr ? dense_desc : label_desc;
  void* target = dense != nullptr ? static_cast<void*>(wanted.data()) : static_cast<void*>(indices->data());
  const auto cpu = make_cpu_backend({})->plan_loss(spec, rows, classes);
  const LossSums expected =
      cpu->forward_backward({x.data(), dense_desc}, {target, target_desc}, 0.25, expected_gradient.data());

  const auto gpu = make_cuda_loss(context, spec, rows, classes);
  const Buffer device_x = on_gpu(context, x), gradient = context.allocate(n * sizeof(float));
  const Buffer device_target = dense != nullptr ? on_gpu(context, wanted) : on_gpu(context, *indices);
  const TensorView output{device_x.data(), dense_desc}, device_target_view{device_target.data(), target_desc};
  const LossSums found = gpu->forward_backward(output, device_target_view, 0.25, gradient.as<float>().data());
  CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-6));
  CHECK(found.weight == doctest::Approx(expected.weight).epsilon(1e-12));
  CHECK(gpu->forward(output, device_target_view).loss == found.loss);
  for (LossPlan* plan : {cpu.get(), gpu.get()}) {  // what is sent is taken once
    const bool on_gpu = plan == gpu.get();
    const TensorView from = on_gpu ? output : TensorView{x.data(), dense_desc};
    const TensorView to = on_gpu ? device_target_view : TensorView{target, target_desc};
    float* slope = on_gpu ? gradient.as<float>().data() : expected_gradient.data();
    for (int i = 0; i < 4; ++i) plan->add_forward_backward(from, to, 0.25, slope, i <= 1);  // the first is forgotten
    plan->send_sums();
    plan->add_forward_backward(from, to, 0.25, slope, true);
    plan->send_sums();  // before the others are taken
    const LossSums taken = plan->take_sums();
    CHECK(taken.loss == doctest::Approx(3 * expected.loss).epsilon(1e-6));
    CHECK(taken.weight == doctest::Approx(3 * expected.weight).epsilon(1e-12));
    CHECK(plan->take_sums().weight == doctest::Approx(expected.weight).epsilon(1e-12));
  }
  const std::vector<float> slopes = download(context, context.compute(), gradient.as<float>().data(), n);
  for (size_t i = 0; i < n; ++i) {
    CAPTURE(i);
    REQUIRE(slopes[i] == doctest::Approx(expected_gradient[i]).epsilon(2e-6));
  }
}

}  // namespace

TEST_CASE("elementwise losses on the GPU are those of the CPU") {
  const std::vector<float> target = normal(2, 0, 3), shares = probabilities();
  compare({.kind = LossSpec::Kind::mse}, &target, nullptr);
  compare({.kind = LossSpec::Kind::l1}, &target, nullptr);
  for (const double beta : {0.0, 1.0, 2.5})
    compare({.kind = LossSpec::Kind::smooth_l1, .beta = beta}, &target, nullptr);
  compare({.kind = LossSpec::Kind::bce_with_logits}, &shares, nullptr);
  compare({.kind = LossSpec::Kind::bce_with_logits, .class_weights = {1, 2, 0.5F, 3, 1}}, &shares, nullptr);
}

TEST_CASE("cross-entropy on the GPU is that of the CPU") {
  const std::vector<float> shares = probabilities();
  std::vector<int64_t> indices = labels();
  for (const double smoothing : {0.0, 0.1}) {
    for (const std::vector<float>& weights : {std::vector<float>(), std::vector<float>{1, 2, 0.5F, 3, 1}}) {
      const LossSpec spec{.label_smoothing = smoothing, .class_weights = weights};
      compare(spec, nullptr, &indices);
      compare(spec, &shares, nullptr);
    }
  }
}

TEST_CASE("a label that is no class is named by its row") {
  sim::reset({});
  cuda::Context context(0);
  std::vector<int64_t> indices = labels();
  indices[8] = 5;
  indices[20] = -1;
  const Buffer x = on_gpu(context, normal(1, 0, 1)), target = on_gpu(context, indices);
  const auto plan = make_cuda_loss(context, {}, rows, classes);
  const TensorView output{x.data(), {Shape{rows, classes}}}, view{target.data(), {Shape{rows}, 1, DType::i64}};
  CHECK_THROWS_WITH_AS(plan->forward(output, view),
                       "cross_entropy: the target of row 8 is not one of 5 classes (0 to 4)", Error);
  const Buffer gradient = context.allocate(n * sizeof(float));
  plan->add_forward_backward(output, view, 1, gradient.as<float>().data(), true);
  plan->send_sums();
  CHECK_THROWS_WITH_AS(plan->take_sums(), "cross_entropy: the target of row 8 is not one of 5 classes (0 to 4)", Error);
}

TEST_CASE("what no loss can compare is refused on the GPU as on the CPU") {
  sim::reset({});
  cuda::Context context(0);
  CHECK_THROWS_AS(make_cuda_loss(context, {.label_smoothing = 2}, 4, 3), Error);
  CHECK_THROWS_AS(make_cuda_loss(context, {.class_weights = {1, 2}}, 4, 3), Error);
  CHECK_THROWS_AS(make_cuda_loss(context, {.kind = LossSpec::Kind::smooth_l1, .beta = -1}, 4, 3), Error);
  const auto plan = make_cuda_loss(context, {.kind = LossSpec::Kind::mse}, 4, 3);
  CHECK_THROWS_AS(plan->forward({nullptr, {Shape{5, 3}}}, {nullptr, {Shape{5, 3}}}), Error);
}

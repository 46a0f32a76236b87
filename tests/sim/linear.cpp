// Linear layers by cuBLASLt beside the CPU's, type by type, and what the simulated library refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backend/cuda/cuda_backend.h"
#include "core/error.h"
#include "core/half.h"
#include "sim/runtime/control.h"

using namespace lockstep;

namespace {

struct Case {
  DType type = DType::f32;
  Shape sample{20};
  int64_t block = 1, batch = 7, out = 11;
  bool bias = true, relu = false, weight_gradient = true;
};

std::vector<float> normal(size_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw(0, 1);
  std::vector<float> values(n);
  for (float& value : values) value = draw(engine);
  return values;
}

size_t count_of(const TensorDesc& desc) { return static_cast<size_t>(desc.shape.numel()); }

// A layer on one backend, run with numbers that both get: everything comes back as PyTorch would have it.
class Layer {
 public:
  Layer(Backend& backend, const Case& c) : backend_(backend), case_(c) {
    spec_.input = {c.sample.with_front(c.batch), c.block, c.type};
    spec_.out_features = c.out;
    spec_.bias = c.bias;
    spec_.activation = c.relu ? Activation::relu : Activation::none;
    spec_.weight_gradient = c.weight_gradient;
    plan_ = backend.plan_linear(spec_);
    inputs_ = static_cast<size_t>(c.sample.numel()), outputs_ = static_cast<size_t>(c.out);
    x_ = activation(spec_.input, 1);
    dy_ = activation(plan_->output(), 2);
    y_ = backend.allocate(plan_->output().bytes());
    dx_ = backend.allocate(spec_.input.bytes());
    w_ = weights(normal(inputs_ * outputs_, 3));
    dw_ = weights(normal(inputs_ * outputs_, 4));
    b_ = put(normal(outputs_, 5));
    db_ = put(normal(outputs_, 6));
    workspace_ = backend.allocate(plan_->workspace_bytes());
    plan_->take_weights(floats(w_), workspace_.data());
  }

  std::vector<float> forward() {
    plan_->forward(x_.data(), floats(w_), case_.bias ? floats(b_) : nullptr, y_.data(), workspace_.data());
    return get(plan_->output(), y_);
  }
  std::vector<float> input_gradient() {
    plan_->backward_data(dy_.data(), floats(w_), dx_.data(), workspace_.data());
    return get(spec_.input, dx_);
  }
  // Of weight and bias, one after the other.
  std::vector<float> gradients(bool accumulate) {
    plan_->backward_weights(x_.data(), dy_.data(), case_.weight_gradient ? floats(dw_) : nullptr,
                            case_.bias ? floats(db_) : nullptr, accumulate, workspace_.data());
    std::vector<float> all(inputs_ * outputs_), stored = read(dw_);
    all = stored;
    if (plan_->weight_format()) plan_->weight_format()->load(stored, all);
    const std::vector<float> bias = read(db_);
    all.insert(all.end(), bias.begin(), bias.end());
    return all;
  }

 private:
  static float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }
  Buffer put(std::span<const float> values) {
    Buffer made = backend_.allocate(values.size_bytes());
    backend_.memory().upload(made.as<float>(), values);
    return made;
  }
  std::vector<float> read(const Buffer& buffer) { return backend_.memory().downloaded(buffer.as<float>()); }
  Buffer weights(const std::vector<float>& canonical) {
    std::vector<float> stored = canonical;
    if (plan_->weight_format()) plan_->weight_format()->store(canonical, stored);
    return put(stored);
  }
  Buffer activation(const TensorDesc& desc, uint32_t seed) {
    const Buffer canonical = put(normal(count_of(desc), seed));
    Buffer made = backend_.allocate(desc.bytes());
    backend_.reorder({desc.shape, 1, DType::f32}, canonical.data(), desc, made.data());
    return made;
  }
  std::vector<float> get(const TensorDesc& desc, const Buffer& from) {
    const Buffer canonical = backend_.allocate(count_of(desc) * sizeof(float));
    backend_.reorder(desc, from.data(), {desc.shape, 1, DType::f32}, canonical.data());
    return read(canonical);
  }

  Backend& backend_;
  Case case_;
  LinearSpec spec_;
  std::unique_ptr<LinearPlan> plan_;
  size_t inputs_ = 0, outputs_ = 0;
  Buffer x_, y_, dx_, dy_, w_, dw_, b_, db_, workspace_;
};

// The largest difference beside the largest value.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

void compare(const Case& c) {
  CAPTURE(name(c.type));
  CAPTURE(c.sample.str());
  sim::reset({});
  const auto cpu = make_cpu_backend({});
  CudaBackend gpu({.index = 0});
  // In 16 bits the bias is rounded before it is added, and the last bit of a result may fall the other way.
  const double tolerance = c.type == DType::f32 ? 1e-6 : c.type == DType::f16 ? 2e-3 : 1.6e-2;
  Layer expected(*cpu, c), found(gpu, c);
  CHECK(difference(found.forward(), expected.forward()) < tolerance);
  CHECK(difference(found.input_gradient(), expected.input_gradient()) < tolerance);
  CHECK(difference(found.gradients(true), expected.gradients(true)) < 1e-6);
  CHECK(difference(found.gradients(false), expected.gradients(false)) < 1e-6);
  CHECK(sim::last_misuse() == "");
}

}  // namespace

TEST_CASE("linear layers on the GPU are those of the CPU") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    compare({.type = type});
    compare({.type = type, .bias = false});
    compare({.type = type, .relu = true});
    compare({.type = type, .batch = 1, .out = 1, .bias = false, .relu = true});
    compare({.type = type, .weight_gradient = false});
  }
}

TEST_CASE("a linear layer behind a blocked activation stores its weights in that order") {
  for (const DType type : {DType::f32, DType::bf16}) {
    compare({.type = type, .sample = Shape{16, 3, 2}, .block = 16});
    compare({.type = type, .sample = Shape{32, 2, 2}, .block = 8});
    compare({.type = type, .sample = Shape{4, 3, 3}, .block = 1});
  }
}

TEST_CASE("fp32 products of a linear layer round nothing unless TF32 is permitted") {
  const Case c;
  const auto forward = [&](const GpuOptions& options) {
    sim::reset({});
    CudaBackend gpu(options);
    return Layer(gpu, c).forward();
  };
  const std::vector<float> exact = forward({.index = 0}), rounded = forward({.index = 0, .tf32 = true});
  CHECK(difference(rounded, exact) > 1e-5);
  CHECK(difference(rounded, exact) < 2e-3);
  CHECK(sim::last_misuse() == "");
}

TEST_CASE("16-bit products of a linear layer know nothing of TF32") {
  sim::reset({});
  CudaBackend gpu({.index = 0, .tf32 = true});
  CHECK_NOTHROW(Layer(gpu, {.type = DType::bf16}).forward());
  CHECK(sim::last_misuse() == "");
}

TEST_CASE("a linear layer that does not fit is refused") {
  sim::reset({});
  CudaBackend gpu({.index = 0});
  CHECK_THROWS_AS(gpu.plan_linear({.input = {Shape{4, 3, 2}}, .out_features = 2}), Error);
  CHECK_THROWS_AS(gpu.plan_linear({.input = {Shape{4, 3}}, .out_features = 0}), Error);
  CHECK_THROWS_AS(gpu.plan_linear({.input = {Shape{4, 6, 2, 2}, 4}, .out_features = 2}), Error);
  CHECK_THROWS_AS(gpu.plan_linear({.input = {Shape{4, 3}}, .out_features = 2, .activation = Activation::gelu}), Error);
  const auto blocked = gpu.plan_linear({.input = {Shape{4, 8, 2, 2}, 8}, .out_features = 2});
  CHECK_THROWS_AS(
      gpu.plan_linear(
          {.input = {Shape{4, 32}}, .out_features = 2, .stored = true, .weight_format = blocked->weight_format()}),
      Error);
}

TEST_CASE("what cuBLASLt would not take is refused by the simulated one") {
  sim::reset({});
  const cuda::Context context(0);
  const cuda::BlasLt blas(context);
  CHECK_THROWS_WITH_AS(cuda::Product(blas, {.a = {DType::f32, 3, 4}, .b = {DType::f32, 5, 6}}),
                       "cublasLtMatmulAlgoGetHeuristic failed: an unsupported value or parameter was passed to the "
                       "function",
                       Error);
  CHECK(sim::last_misuse() == "cublasLtMatmulAlgoGetHeuristic: matrices that do not fit each other");
  CHECK_THROWS_AS(cuda::Product(blas, {.a = {DType::f32, 3, 4}, .b = {DType::bf16, 4, 6}}), Error);

  cuda::Product product(blas, {.a = {DType::f32, 3, 4}, .b = {DType::f32, 4, 6}, .bias = true});
  const Buffer a = context.allocate(3 * 4 * 4), b = context.allocate(4 * 6 * 4), d = context.allocate(3 * 6 * 4);
  const Buffer workspace = context.allocate(product.workspace_bytes()), bias = context.allocate(3 * 4);
  const auto misuse_of = [&](const void* b_from, const void* bias_from, void* scratch) {
    CHECK_THROWS_AS(product.run({.a = a.data(), .b = b_from, .d = d.data(), .workspace = scratch, .bias = bias_from}),
                    Error);
    return sim::last_misuse();
  };
  CHECK(misuse_of(b.data(), nullptr, workspace.data()) == "cublasLtMatmul: the bias is no device memory");
  CHECK(misuse_of(b.data(), bias.data(), nullptr) ==
        "cublasLtMatmul: the workspace is no device memory, or not aligned");
  CHECK(misuse_of(d.data(), bias.data(), workspace.data()) == "cublasLtMatmul: a matrix that is not in device memory");
  CHECK(misuse_of(b.as<float>().data() + 1, bias.data(), workspace.data()) ==
        "cublasLtMatmul: a matrix that is not in device memory");
  CHECK_NOTHROW(
      product.run({.a = a.data(), .b = b.data(), .d = d.data(), .workspace = workspace.data(), .bias = bias.data()}));
  context.synchronize(context.compute());
}

// Two linear layers with a ReLU between them on a simulated GPU: what is part of their products, what is not, and what
// becomes of it where the library has no such product.
#include <doctest/doctest.h>

#include <cublasLt.h>

#include "backend/cuda/cuda_backend.h"
#include "core/error.h"
#include "gpu/network_gradients.h"
#include "gpu/operation.h"
#include "sim/runtime/control.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

struct Counted {
  std::vector<Floats> results;
  int forward = 0, backward = 0, accumulating = 0;  // kernels of our own
  std::string others;                               // what else a step calls that is neither a product nor the test's
};

int launches() { return sim::calls()["cudaLaunchKernel"]; }

// A first micro-step, and one that adds to its gradients.
Counted run(const GradientCase& c, const std::vector<int>& lost = {}) {
  sim::reset({});
  for (const int epilogue : lost) sim::lose_epilogue(epilogue);
  CudaBackend gpu({.index = 0});
  NetworkGradients network(gpu, c);
  Counted counted;
  network.run();  // copies of weights are made, arrays allocated
  network.prepare(0);
  std::map<std::string, int> before = sim::calls();
  network.forward();
  counted.forward = launches() - before["cudaLaunchKernel"];
  int earlier = launches();
  network.backward(false);
  counted.backward = launches() - earlier;
  for (const auto& [function, count] : sim::calls())
    if (before[function] != count && function != "cudaLaunchKernel" && function != "cublasLtMatmul" &&
        function != "cudaMemcpyAsync")
      counted.others += function + " ";
  network.prepare(1);
  network.forward();
  earlier = launches();
  network.backward(true);
  counted.accumulating = launches() - earlier;
  counted.results = network.results();
  CHECK_EQ(sim::last_misuse(), "");
  return counted;
}

std::vector<Floats> on_cpu(const GradientCase& c) {
  const auto cpu = make_cpu_backend({});
  NetworkGradients network(*cpu, c);
  for (int step = 0; step < 2; ++step) {
    network.prepare(step);
    network.forward();
    network.backward(step > 0);
  }
  return network.results();
}

GradientCase three_layers(DType type = DType::f32, bool apart = false, bool bias = true) {
  return {.model = relu_network({20, 17, 5}, apart, bias), .sample = Shape{11}, .batch = 9, .type = type};
}

}  // namespace

TEST_CASE("between linear layers a backward pass has no kernel but its products") {
  const Counted pairs = run(three_layers());
  CHECK_EQ(pairs.forward, 0);
  CHECK_EQ(pairs.backward, 0);
  CHECK_EQ(pairs.accumulating, 3);  // the bias gradients are added to what is there
  // Apart they mask with a kernel each, and the gradient of a bias is still part of the weight's.
  CHECK_EQ(run(three_layers(DType::f32, true)).backward, 2);
  // As it was without epilogues: two masks, three column sums.
  const Counted kernels = run(three_layers(), {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_BGRADB});
  CHECK_EQ(kernels.backward, 5);
  CHECK_EQ(kernels.accumulating, 5);
}

TEST_CASE("between linear layers in 16 bits a backward pass has no kernel but its products and a conversion") {
  for (const DType type : {DType::bf16, DType::f16}) {
    // The loss is fp32: one conversion of the output's gradient.
    CHECK_EQ(run(three_layers(type)).backward, 1);
    CHECK_EQ(run(three_layers(type), {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_BGRADB}).backward, 6);
  }
}

TEST_CASE("linear layers in a row have the CPU's gradients whatever cuBLASLt has") {
  using Lost = std::vector<int>;
  for (const Lost& lost :
       {Lost{}, Lost{CUBLASLT_EPILOGUE_DRELU_BGRAD}, Lost{CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_DRELU},
        Lost{CUBLASLT_EPILOGUE_DRELU}, Lost{CUBLASLT_EPILOGUE_RELU_AUX_BIAS}, Lost{CUBLASLT_EPILOGUE_BGRADB}}) {
    CAPTURE(lost.size());
    for (const DType type : kTypes) {
      CAPTURE(name(type));
      const Counted found = run(three_layers(type), lost);
      CHECK_EQ(found.others, "");
      // In 16 bits the bias is rounded before it is added, so a ReLU may fall the other way on the CPU.
      if (type == DType::f32) compare_all(found.results, on_cpu(three_layers(type)), 2e-6);
      compare_all(found.results, run(three_layers(type, true)).results, 2e-6);
    }
  }
}

TEST_CASE("linear layers in a row without biases have the CPU's gradients") {
  for (const auto& lost :
       {std::vector<int>{}, std::vector<int>{CUBLASLT_EPILOGUE_RELU_AUX}, std::vector<int>{CUBLASLT_EPILOGUE_DRELU}}) {
    const Counted found = run(three_layers(DType::f32, false, false), lost);
    compare_all(found.results, on_cpu(three_layers(DType::f32, false, false)), 2e-6);
    CHECK_EQ(found.backward, lost.empty() ? 0 : 2);
  }
}

TEST_CASE("frozen weights and biases of linear layers in a row get no gradient and the others theirs") {
  using Names = std::vector<std::string>;
  for (const DType type : kTypes) {
    for (const Names& frozen :
         {Names{"a.weight"}, Names{"a.bias"}, Names{"b.weight", "b.bias"}, Names{"a.weight", "a.bias", "b.weight"},
          Names{"a.weight", "a.bias"}, Names{"b.bias", "c.bias"}, Names{"c.weight"}}) {
      CAPTURE(name(type));
      CAPTURE(frozen[0]);
      GradientCase c = three_layers(type), apart = three_layers(type, true);
      c.frozen = apart.frozen = frozen;
      const Counted found = run(c);
      CHECK_EQ(found.others, "");
      if (type == DType::f32) compare_all(found.results, on_cpu(c), 2e-6);
      compare_all(found.results, run(apart).results, 2e-6);
    }
  }
}

TEST_CASE("what lies between linear layers or reads their ReLU too keeps them apart") {
  const auto mask_kernels = [](const std::vector<LayerSpec>& between) {
    GradientCase c = three_layers();
    c.model.layers = {{.kind = "linear", .name = "a", .out = 20}, {.kind = "relu", .name = "r"}};
    c.model.layers.insert(c.model.layers.end(), between.begin(), between.end());
    compare_all(run(c).results, on_cpu(c), 2e-6);
    int masks = 0;
    for (const sim::Traced& traced : sim::trace())
      masks += traced.kernel != nullptr && std::string(traced.kernel).find("ReluMask") != std::string::npos;
    return masks;
  };
  const LayerSpec last{.kind = "linear", .name = "b", .out = 20};
  CHECK_EQ(mask_kernels({last}), 0);
  CHECK_EQ(mask_kernels({{.kind = "dropout", .p = 0.5}, last}), 3);  // one for each micro-step
  CHECK_EQ(mask_kernels({{.kind = "layer_norm", .name = "n"}, last}), 3);
  CHECK_EQ(mask_kernels({last, {.kind = "add", .name = "sum", .input = "b", .add = "r"}}), 3);
  CHECK_EQ(mask_kernels({}), 3);  // the network's output
}

TEST_CASE("masks and bias gradients that cuBLASLt would not take are refused by the simulated one") {
  sim::reset({});
  const cuda::Context context(0);
  const cuda::BlasLt blas(context);
  const cuda::Matrix a{DType::f32, 3, 4}, b{DType::f32, 4, 6};
  cuda::Product keeps(blas, {.a = a, .b = b, .relu = true, .mask = true});
  cuda::Product masked(blas, {.a = a, .b = b, .mask = true, .bias_gradient = true});
  cuda::Product sums(blas, {.a = a, .b = b, .bias_gradient = true});
  const Buffer from = context.allocate(4 * 6 * 4), d = context.allocate(3 * 6 * 4), scratch = context.allocate(6000);
  const Buffer mask = context.allocate(cuda::Product::mask_bytes(3, 6)), bias = context.allocate(6 * 4);
  CHECK_EQ(mask.bytes(), 6 * 16);
  const auto misuse_of = [&](cuda::Product& product, void* gradient, void* bits) {
    CHECK_THROWS_AS(product.run({.a = from.data(),
                                 .b = from.data(),
                                 .d = d.data(),
                                 .workspace = scratch.data(),
                                 .bias_gradient = gradient,
                                 .mask = bits}),
                    Error);
    return sim::last_misuse();
  };
  const auto at = [](const Buffer& buffer, size_t bytes) { return static_cast<std::byte*>(buffer.data()) + bytes; };
  CHECK_EQ(misuse_of(keeps, nullptr, nullptr), "cublasLtMatmul: the mask is no device memory");
  CHECK_EQ(misuse_of(keeps, nullptr, at(mask, 16)), "cublasLtMatmul: the mask is no device memory");  // too short
  CHECK_EQ(misuse_of(keeps, nullptr, at(scratch, 8)), "cublasLtMatmul: a mask that is less aligned than was promised");
  CHECK_EQ(misuse_of(masked, nullptr, mask.data()), "cublasLtMatmul: the bias gradient is no device memory");
  CHECK_EQ(misuse_of(masked, at(bias, 4), mask.data()),
           "cublasLtMatmul: a bias that is less aligned than was promised");
  CHECK_EQ(misuse_of(sums, at(bias, 16), nullptr), "cublasLtMatmul: the bias gradient is no device memory");  // 6 long

  // Descriptors that no product of ours has.
  const cuda::BlasLtFunctions& lt = blas.functions();
  const auto refused = [&](int32_t epilogue, int64_t step, bool bias_pointer, bool mask_pointer) {
    cublasLtMatmulDesc_t product = nullptr;
    lt.create_product(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const void *bias_at = bias.data(), *mask_at = mask.data();
    lt.set_product(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
    lt.set_product(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &step, sizeof(step));
    if (bias_pointer)
      lt.set_product(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(&bias_at), sizeof(bias_at));
    if (mask_pointer)
      lt.set_product(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(&mask_at), sizeof(mask_at));
    cublasLtMatrixLayout_t layouts[3] = {};
    lt.create_layout(&layouts[0], CUDA_R_32F, 3, 4, 3);
    lt.create_layout(&layouts[1], CUDA_R_32F, 4, 6, 4);
    lt.create_layout(&layouts[2], CUDA_R_32F, 3, 6, 3);
    cublasLtMatmulPreference_t wanted = nullptr;
    lt.create_preference(&wanted);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status = lt.heuristic(blas.handle(), product, layouts[0], layouts[1], layouts[2], layouts[2],
                                               wanted, 1, &result, &found);
    lt.destroy_preference(wanted);
    for (const cublasLtMatrixLayout_t layout : layouts) lt.destroy_layout(layout);
    lt.destroy_product(product);
    return status == CUBLAS_STATUS_SUCCESS ? "" : sim::last_misuse().substr(sim::last_misuse().find(": ") + 2);
  };
  CHECK_EQ(refused(CUBLASLT_EPILOGUE_DRELU_BGRAD, 128, true, true), "");
  const std::string step = "a mask whose columns are no multiple of 128 bits, or too short";
  CHECK_EQ(refused(CUBLASLT_EPILOGUE_DRELU, 0, false, true), step);
  CHECK_EQ(refused(CUBLASLT_EPILOGUE_RELU_AUX, 64, false, true), step);
  CHECK_EQ(refused(CUBLASLT_EPILOGUE_BGRADB, 0, true, true), "a mask that nobody reads or writes");
  CHECK_EQ(refused(CUBLASLT_EPILOGUE_DRELU, 128, true, true), "a bias that nobody reads");
  CHECK_EQ(refused(CUBLASLT_EPILOGUE_GELU, 0, false, false), "this epilogue is not simulated");
  CHECK_EQ(refused(CUBLASLT_EPILOGUE_BGRADB | CUBLASLT_EPILOGUE_RELU, 0, true, false),
           "this epilogue is not simulated");
  context.synchronize(context.compute());
}

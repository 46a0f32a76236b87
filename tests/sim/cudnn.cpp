// The simulated cuDNN itself: it must refuse what the real one refuses, and show what goes wrong quietly there.
#include <doctest/doctest.h>

#include <cudnn.h>

#include <cmath>

#include "core/half.h"
#include "sim/gpu_arrays.h"

using namespace lockstep;
using test::GpuArrays;

namespace {

constexpr float one = 1, zero = 0;

// A convolution of [2, 4, 5, 5] by three kernels of 3 x 3, with everything right, for tests to spoil.
struct Setup {
  GpuArrays gpu;
  cudnnHandle_t handle{};
  cudnnTensorDescriptor_t x{}, y{}, bias{};
  cudnnFilterDescriptor_t w{};
  cudnnConvolutionDescriptor_t c{};
  cudnnActivationDescriptor_t relu{};
  size_t workspace_bytes = 4096;
  float *x_data, *w_data, *y_data, *bias_data;
  void* workspace;

  explicit Setup(uint64_t seed = 1) : gpu(seed) {
    cudnnCreate(&handle);
    cudnnSetStream(handle, gpu.context().compute().get());
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&y);
    cudnnCreateTensorDescriptor(&bias);
    cudnnCreateFilterDescriptor(&w);
    cudnnCreateConvolutionDescriptor(&c);
    cudnnCreateActivationDescriptor(&relu);
    cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 4, 5, 5);
    cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 3, 3);
    cudnnSetTensor4dDescriptor(bias, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 3, 1, 1);
    cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 3, 4, 3, 3);
    cudnnSetConvolution2dDescriptor(c, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    cudnnSetConvolutionMathType(c, CUDNN_FMA_MATH);
    cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0);
    x_data = gpu.put(std::vector<float>(200, 0.5F)), w_data = gpu.put(std::vector<float>(108, 2.0F));
    y_data = gpu.floats(54), bias_data = gpu.put(std::vector<float>(3, -30.0F));
    workspace = gpu.make(workspace_bytes);
  }
  Setup(const Setup&) = delete;
  ~Setup() {
    gpu.context().synchronize(gpu.context().compute());
    cudnnDestroyActivationDescriptor(relu);
    cudnnDestroyConvolutionDescriptor(c);
    cudnnDestroyFilterDescriptor(w);
    for (const cudnnTensorDescriptor_t tensor : {x, y, bias}) cudnnDestroyTensorDescriptor(tensor);
    cudnnDestroy(handle);
  }

  cudnnStatus_t forward(cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    return cudnnConvolutionForward(handle, &one, x, x_data, w, w_data, c, algorithm, workspace, workspace_bytes, &zero,
                                   y, y_data);
  }
  cudnnStatus_t fused(cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    return cudnnConvolutionBiasActivationForward(handle, &one, x, x_data, w, w_data, c, algorithm, workspace,
                                                 workspace_bytes, &zero, y, y_data, bias, bias_data, relu, y, y_data);
  }
};

// The category of what a call returns after `spoil`, and what was told of it.
template <class Spoil>
int refused(const Spoil& spoil) {
  Setup setup;
  spoil(setup);
  const int category = CUDNN_STATUS_CATEGORY(setup.forward());
  CHECK_NE(sim::last_misuse(), "");
  return category;
}

}  // namespace

TEST_CASE("the simulated cuDNN computes what the descriptors say") {
  Setup s;
  REQUIRE(s.forward() == CUDNN_STATUS_SUCCESS);
  CHECK(s.gpu.get(s.y_data, 54) == std::vector<float>(54, 36.0F));  // 36 products of 0.5 and 2
  REQUIRE(s.fused() == CUDNN_STATUS_SUCCESS);
  CHECK(s.gpu.get(s.y_data, 54) == std::vector<float>(54, 6.0F));
  CHECK(sim::last_misuse() == "");
}

TEST_CASE("the simulated cuDNN refuses descriptors that do not belong together") {
  const int bad = CUDNN_STATUS_BAD_PARAM, unsupported = CUDNN_STATUS_NOT_SUPPORTED;
  CHECK(refused([](Setup& s) { cudnnSetTensor4dDescriptor(s.y, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 5, 5); }) ==
        bad);
  CHECK(refused([](Setup& s) { cudnnSetTensor4dDescriptor(s.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 4, 5, 5); }) ==
        bad);
  CHECK(refused([](Setup& s) { cudnnSetTensor4dDescriptor(s.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 5, 5); }) ==
        unsupported);
  CHECK(refused([](Setup& s) { cudnnSetFilter4dDescriptor(s.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 3, 2, 3, 3); }) ==
        bad);
  CHECK(refused([](Setup& s) { cudnnSetConvolutionGroupCount(s.c, 2); }) == bad);
  CHECK(refused([](Setup& s) {
          cudnnSetConvolution2dDescriptor(s.c, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
        }) == bad);
  CHECK(refused([](Setup& s) {
          cudnnSetConvolution2dDescriptor(s.c, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT);
        }) == unsupported);
  CHECK(refused([](Setup& s) {
          cudnnDestroyTensorDescriptor(s.x);
          cudnnCreateTensorDescriptor(&s.x);
        }) == bad);
  Setup s;
  CHECK(cudnnSetTensor4dDescriptor(s.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 0, 4, 5, 5) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetConvolution2dDescriptor(s.c, 0, 0, 0, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT) ==
        CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("the simulated cuDNN refuses pointers that do not hold what is described") {
  const int bad = CUDNN_STATUS_BAD_PARAM;
  static float host[200];
  CHECK(refused([](Setup& s) { s.x_data = host; }) == bad);
  CHECK(refused([](Setup& s) { s.y_data += 4; }) == bad);
  CHECK(refused([](Setup& s) { s.w_data = nullptr; }) == bad);
  CHECK(refused([](Setup& s) { s.workspace_bytes = 16; }) == bad);
  CHECK(refused([](Setup& s) { s.workspace_bytes = 5000; }) == bad);
  CHECK(refused([](Setup& s) { s.x_data = s.gpu.floats(300) + 1; }) == bad);
  CHECK(refused([](Setup& s) { cudnnSetStream(s.handle, nullptr); }) == CUDNN_STATUS_EXECUTION_FAILED);
}

TEST_CASE("the simulated cuDNN refuses algorithms and epilogues that the real one lacks") {
  Setup s;
  CHECK(s.forward(CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(s.forward(CUDNN_CONVOLUTION_FWD_ALGO_DIRECT) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(s.fused(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) == CUDNN_STATUS_SUCCESS);
  cudnnSetActivationDescriptor(s.relu, CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0);
  CHECK(s.fused(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(s.fused() == CUDNN_STATUS_SUCCESS);
  cudnnSetActivationDescriptor(s.relu, CUDNN_ACTIVATION_TANH, CUDNN_PROPAGATE_NAN, 0);
  CHECK(s.fused() == CUDNN_STATUS_NOT_SUPPORTED);
  cudnnSetActivationDescriptor(s.relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0);
  cudnnSetTensor4dDescriptor(s.bias, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 4, 1, 1);
  CHECK(s.fused() == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("a convolution reads its arrays when its stream comes to it") {
  int early = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Setup s(seed);
    const auto& other = s.gpu.context().copies();
    REQUIRE(s.forward() == CUDNN_STATUS_SUCCESS);
    s.gpu.context().fill_zero(other, s.x_data, 200 * sizeof(float));  // no event orders the two
    const float y = s.gpu.get(s.y_data, 54)[0];
    early += y != 36;
    s.gpu.context().synchronize(other);
  }
  CHECK(early > 0);
  CHECK(early < 20);
}

TEST_CASE("an algorithm whose sums have no order has bits of its own on every run") {
  const auto gradient = [](cudnnConvolutionBwdFilterAlgo_t algorithm, uint64_t seed) {
    Setup s(seed);
    std::vector<float> x(200), dy(54);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 1 / static_cast<float>(i + 3);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = 1 / static_cast<float>(i + 7);
    float *from = s.gpu.put(x), *gradients = s.gpu.put(dy);
    REQUIRE(cudnnConvolutionBackwardFilter(s.handle, &one, s.x, from, s.y, gradients, s.c, algorithm, s.workspace,
                                           s.workspace_bytes, &zero, s.w, s.w_data) == CUDNN_STATUS_SUCCESS);
    return s.gpu.get(s.w_data, 108);
  };
  CHECK(gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, 1) == gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, 2));
  CHECK(gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, 1) != gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, 2));
}

TEST_CASE("the workspace of a convolution is lost") {
  Setup s;
  REQUIRE(s.forward() == CUDNN_STATUS_SUCCESS);
  CHECK(std::isnan(s.gpu.get(s.workspace, 4)[2]));
}

// What the simulated cuDNN knows: descriptors as the caller set them, and the convolution that four of them describe.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
// Of the formats NCHW and NHWC, without gaps.
struct cudnnTensorStruct {
  bool set = false;
  cudnnTensorFormat_t format{};
  cudnnDataType_t type{};
  int n = 0, c = 0, h = 0, w = 0;
};
struct cudnnFilterStruct {
  bool set = false;
  cudnnTensorFormat_t format{};
  cudnnDataType_t type{};
  int k = 0, c = 0, h = 0, w = 0;
};
struct cudnnConvolutionStruct {
  bool set = false;
  std::array<int, 2> padding{}, stride{}, dilation{};
  cudnnConvolutionMode_t mode{};
  cudnnDataType_t compute{};
  int groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
struct cudnnActivationStruct {
  bool set = false;
  cudnnActivationMode_t mode{};
  cudnnNanPropagation_t nan{};
};

namespace lockstep::sim {

cudnnStatus_t wrong(const char* function, const std::string& what, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM);

enum class ConvolutionPass { forward, data, filter };

// A convolution of x by w to y, or its gradients in these places.
struct Convolution {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct c;

  size_t x_bytes() const;
  size_t w_bytes() const;
  size_t y_bytes() const;

  // All sums in fp32. order: in which output pixels n * h * w of y are taken. The result is added to beta times what is
  // there; forward's also gets a bias and ReLU.
  struct Epilogue {
    const void* bias = nullptr;  // of y's type
    bool relu = false;
  };
  void forward(float alpha, const void* x, const void* w, float beta, const Epilogue& epilogue, void* y) const;
  void data(float alpha, const void* w, const void* dy, float beta, void* dx, const std::vector<size_t>& order) const;
  void filter(float alpha, const void* x, const void* dy, float beta, void* dw, const std::vector<size_t>& order) const;
};

// Reads the descriptors; what does not belong together is told, and is the status.
cudnnStatus_t describe(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                       cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y, Convolution& convolution);

// The library's algorithms of a pass, the most promising first; what promises can't always be kept.
struct AlgorithmFacts {
  int algorithm;
  bool deterministic;
  bool runs;
  size_t workspace;
};
std::vector<AlgorithmFacts> algorithms(ConvolutionPass pass, const Convolution& convolution);
// Null: not one that runs.
const AlgorithmFacts* running(const std::vector<AlgorithmFacts>& all, int algorithm);

}  // namespace lockstep::sim

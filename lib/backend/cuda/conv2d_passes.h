// The three passes of one convolution in cuDNN's terms: descriptors, and for each pass the algorithm that was chosen
// when this object was made. Activations have channels last, filters are [out][kh][kw][in], both of one type.
#pragma once

#include <cstddef>

#include "backend/cuda/context.h"
#include "backend/cuda/dnn.h"
#include "backend/specs.h"

namespace lockstep::cuda {

class ConvolutionPasses {
 public:
  // Plans forward, and backward as far as the spec wants it. Every algorithm has run once, on zeros, before it is
  // chosen. Throws Error where there is none within the options. dnn outlives this object.
  ConvolutionPasses(const Context& context, Dnn& dnn, const Conv2dSpec& spec, const Shape& output);
  size_t workspace_bytes() const;

  // Whether bias and ReLU are added by forward itself; forward_plain leaves both out.
  bool fused() const { return fused_; }
  void forward(const void* x, const void* w, const void* bias, void* y, void* workspace) const;
  void forward_plain(const void* x, const void* w, void* y, void* workspace) const;
  void backward_data(const void* w, const void* dy, void* dx, void* workspace) const;
  void backward_weights(const void* x, const void* dy, void* dw, bool accumulate, void* workspace) const;

 private:
  struct Pass {
    ConvolutionDescriptor convolution{nullptr, nullptr};  // with the algorithm's kind of arithmetic
    int algorithm = -1;
    size_t workspace = 0;
  };
  struct Scratch;  // arrays to try algorithms on
  Pass make_pass(const Conv2dSpec& spec) const;
  cudnnMathType_t base_math() const;
  bool done(cudnnStatus_t status, const char* what) const;
  void plan_forward(const Conv2dSpec& spec, Scratch& scratch);
  void plan_data(const Conv2dSpec& spec, Scratch& scratch);
  void plan_weights(const Conv2dSpec& spec, Scratch& scratch);
  template <class Search>
  void choose(Pass& pass, Scratch& scratch, const char* name, const Search& search) const;
  cudnnStatus_t run_fused(const void* x, const void* w, const void* bias, void* y, void* workspace) const;
  cudnnStatus_t run_plain(const void* x, const void* w, void* y, void* workspace) const;
  cudnnStatus_t run_data(const void* w, const void* dy, void* dx, void* workspace) const;
  cudnnStatus_t run_weights(const void* x, const void* dy, void* dw, float beta, void* workspace) const;

  const Context& context_;
  Dnn& dnn_;
  const CudnnFunctions& f_;
  cudnnHandle_t handle_;
  DType type_;
  TensorDescriptor x_, y_, bias_;
  FilterDescriptor w_;
  ActivationDescriptor activation_;
  Pass forward_, data_, weights_;
  bool fused_ = false;
};

}  // namespace lockstep::cuda

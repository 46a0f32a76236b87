// Operations made once at bind time and run every step. All pointers are on the backend's device, activations in the
// layout and type of their TensorDesc (void*), parameters and their gradients in fp32. `workspace` is scratch of
// workspace_bytes(), undefined between calls; `saved` of saved_bytes() keeps what forward leaves for backward. Nothing
// here allocates after construction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/specs.h"
#include "core/counter_rng.h"
#include "core/tensor.h"

namespace lockstep {

// Shared by all plans; each adds forward and backward in its own terms.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual size_t workspace_bytes() const { return 0; }
  virtual size_t saved_bytes() const { return 0; }
};

// y = activation(conv(x, w) + b). Cross-correlation as in PyTorch. Canonical weight [out][in/groups][kh][kw].
class Conv2dPlan : public Plan {
 public:
  virtual TensorDesc output() const = 0;
  virtual WeightFormatPtr weight_format() const = 0;  // also the gradient's format
  // The weights have changed: plans that compute with converted copies make them here. Before the first forward.
  virtual void take_weights(const float* /*w*/, void* /*workspace*/) {}
  virtual void forward(const void* x, const float* w, const float* b, void* y, void* workspace) = 0;
  // dy is the gradient of the convolution's own output (before the activation).
  virtual void backward_data(const void* dy, const float* w, void* dx, void* workspace) = 0;
  // dw, db (null without bias): overwritten, or added to when accumulate. Either may be null: it is frozen, and its
  // gradient is neither computed nor stored (dw only where the spec has said so with weight_gradient = false).
  virtual void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                                void* workspace) = 0;
};

// y = activation(x w^T + b). Canonical weight [out][in].
class LinearPlan : public Plan {
 public:
  virtual TensorDesc output() const = 0;
  virtual WeightFormatPtr weight_format() const = 0;
  virtual void take_weights(const float* /*w*/, void* /*workspace*/) {}
  virtual void forward(const void* x, const float* w, const float* b, void* y, void* workspace) = 0;
  virtual void backward_data(const void* dy, const float* w, void* dx, void* workspace) = 0;
  virtual void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate,
                                void* workspace) = 0;
};

class Pool2dPlan : public Plan {
 public:
  virtual TensorDesc output() const = 0;
  virtual void forward(const void* x, void* y, void* saved) = 0;
  // Overwrites dx. y is the forward output (read only where mask_relu).
  virtual void backward(const void* dy, const void* y, void* dx, const void* saved) = 0;
};

// Normalisations and softmax know fp32 only. Per-channel normalisation. weight, bias: [C] or null without affine.
// running_*: [C], updated by training forward. Over several ranks (spec.across_ranks) forward and backward are
// collective, and dweight, dbias stay sums over the rank's own samples. A rank without samples in a micro-step calls
// forward_empty and backward_empty in their place: they take part in the sums and in the running statistics. Without
// across_ranks they do nothing.
class BatchNormPlan : public Plan {
 public:
  virtual void forward(const float* x, const float* weight, const float* bias, float* running_mean, float* running_var,
                       float* batches_tracked, float* y, void* saved) = 0;
  virtual void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                        bool accumulate, const void* saved, void* workspace) = 0;
  virtual void forward_empty(float* running_mean, float* running_var, float* batches_tracked) = 0;
  virtual void backward_empty() = 0;
};

class LayerNormPlan : public Plan {
 public:
  virtual void forward(const float* x, const float* weight, const float* bias, float* y, void* saved) = 0;
  virtual void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                        bool accumulate, const void* saved, void* workspace) = 0;
};

class GroupNormPlan : public Plan {
 public:
  virtual void forward(const float* x, const float* weight, const float* bias, float* y, void* saved) = 0;
  virtual void backward(const float* x, const float* dy, const float* weight, float* dx, float* dweight, float* dbias,
                        bool accumulate, const void* saved, void* workspace) = 0;
};

// Elementwise. relu: backward reads y only; the others read x (and y where that is cheaper). dx may be dy.
class ActivationPlan : public Plan {
 public:
  virtual void forward(const void* x, void* y) = 0;
  virtual void backward(const void* x, const void* y, const void* dy, void* dx) = 0;
};

class SoftmaxPlan : public Plan {
 public:
  virtual void forward(const float* x, float* y) = 0;
  virtual void backward(const float* y, const float* dy, float* dx) = 0;
};

// Of a dropout layer's masks: the step's key, and which layer it is. A GPU's recorded step reads the former anew.
struct DropoutKey {
  uint64_t step = 0, layer = 0;
  constexpr uint64_t word() const { return counter_word(step, layer); }
};

// y = x * mask / (1-p), the mask from the counter stream key.word() (element i depends on it and i only); dx = dy *
// mask / (1-p).
class DropoutPlan : public Plan {
 public:
  virtual void forward(const void* x, void* y, const DropoutKey& key, void* saved) = 0;
  // keep[i] != 0: element i survives. For masks drawn elsewhere (PyTorch's own stream).
  virtual void forward_with_mask(const void* x, void* y, const uint8_t* keep, void* saved) = 0;
  virtual void backward(const void* dy, void* dx, const void* saved) = 0;
};

}  // namespace lockstep

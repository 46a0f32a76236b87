// What convolutions and inner products have in common: y = f(x, w) + b in three passes that share one stored weight
// layout, with conversions through the workspace where a pass wants another layout than the one it is given.
// Activations may be bf16; weights, bias and their gradients are stored in fp32, and the passes that read weights get a
// bf16 copy.
#pragma once

#include <cstddef>
#include <functional>

#include "backend/cpu/onednn_layout.h"

namespace lockstep::onednn {

// The primitives of one operation and the layouts between which they run.
struct AffineChoice {
  MemoryDesc x, y;                                         // as the caller holds them
  MemoryDesc src, dst;                                     // as the primitives want them
  MemoryDesc weights;                                      // as stored, fp32; each pass may want another layout
  MemoryDesc bias;                                         // empty: none
  PrimitiveDesc forward, backward_data, backward_weights;  // backward: empty where not wanted
  double cost = 0;                                         // lower is better
};

// Makes the primitive of one pass for given layouts of its operands.
enum class Pass { forward, backward_data, backward_weights };
using PassMaker =
    std::function<PrimitiveDesc(Pass pass, const MemoryDesc& src, const MemoryDesc& weights, const MemoryDesc& dst)>;

struct AffineProblem {
  MemoryDesc x, y, bias;
  std::vector<MemoryDesc> srcs, dsts;          // acceptable to the primitives, the preferred first
  DType type = DType::f32;                     // of the activations
  MemoryDesc any_weights;                      // of the passes that read weights, in that type
  MemoryDesc any_gradient, canonical_weights;  // fp32
  MemoryDesc stored;                           // fixed weight layout, fp32; empty: free
  bool backward_data = true, backward_weights = true;
  std::vector<PassMaker> makers;  // algorithms, the preferred first
};
// The cheapest choice over all layouts and algorithms, the same on every run; infinite cost and empty where the library
// has none. The makers' last is asked for the weight layout.
AffineChoice choose_affine(const AffineProblem& problem);

class AffinePasses {
 public:
  // Throws Error for an empty choice.
  AffinePasses(const Context& context, const AffineChoice& choice);
  size_t workspace_bytes() const { return workspace_bytes_; }
  void take_weights(const float* w, void* workspace);
  void forward(const void* x, const float* w, const float* b, void* y, void* workspace);
  void backward_data(const void* dy, const float* w, void* dx, void* workspace);
  void backward_weights(const void* x, const void* dy, float* dw, float* db, bool accumulate, void* workspace);

 private:
  // The operand itself, or its converted copy in the workspace.
  const void* converted(Conversion& conversion, const void* from, size_t offset, void* workspace);

  Primitive forward_, backward_data_, backward_weights_;
  Conversion x_in_, dx_out_, y_out_, dy_in_, dw_out_;
  PassWeights w_forward_, w_backward_data_;
  bool one_copy_ = false;  // forward's weights serve backward_data too
  size_t x_at_ = 0, y_at_ = 0, w_at_ = 0, dw_at_ = 0, db_at_ = 0, scratchpad_at_ = 0, workspace_bytes_ = 0;
  size_t weight_count_ = 0, bias_count_ = 0;
};

}  // namespace lockstep::onednn

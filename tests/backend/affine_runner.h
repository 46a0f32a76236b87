// Runs a convolution or linear plan on canonical data: converts activations and weights to the plan's layouts and back,
// and checks on the way that nothing is written outside the buffers and that gradient padding stays zero.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/plans.h"
#include "support/oracle.h"

namespace lockstep::test {

struct AffineResult {
  std::vector<float> y, dx, dw, db;  // canonical; dx empty without an input gradient
  std::string broken;                // what a buffer check found, empty when all is well
};

struct AffineRun {
  TensorDesc input;
  bool bias = true, input_gradient = true, backward = true;
  bool accumulate = false;             // run backward_weights twice, the second time adding
  std::span<const float> x, w, b, dy;  // canonical; dy is the gradient before the activation
};

template <class AffinePlan>
AffineResult run_affine(AffinePlan& plan, const AffineRun& run);

// An activation from canonical to the layout of `desc`, and back.
std::vector<float> to_layout(const TensorDesc& desc, std::span<const float> canonical);
std::vector<float> from_layout(const TensorDesc& desc, std::span<const float> values);

}  // namespace lockstep::test

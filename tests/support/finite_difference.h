// Gradients against finite differences of the forward pass, along random directions. The forward pass is float, so the
// step is large and the difference of high order: 5 points, h = 1/64, leaves about 1e-5 of rounding and truncation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::test {

using ScalarFunction = std::function<double(const std::vector<float>& x)>;

// Empty when f changes along four random directions of +-1 as `gradient` says, within tolerance * |gradient| + 1e-4.
std::string gradient_differs(const ScalarFunction& f, const std::vector<float>& x, std::span<const float> gradient,
                             uint32_t seed, double tolerance = 2e-3);

// sum a * b in double: the scalar whose gradient backward(b) returns.
double dot(std::span<const float> a, std::span<const float> b);

}  // namespace lockstep::test

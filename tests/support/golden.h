// Golden numbers of tests/golden/ and comparisons that say where two arrays differ.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/shape.h"

namespace lockstep::test {

const nlohmann::json& golden(const std::string& file);      // tests/golden/FILE, parsed once per process
std::vector<float> flat_f32(const nlohmann::json& nested);  // row-major; decimal -> double -> float
std::vector<double> flat_f64(const nlohmann::json& nested);
std::vector<int64_t> flat_i64(const nlohmann::json& nested);
Shape shape_of(const nlohmann::json& nested);
std::array<int64_t, 2> pair(const nlohmann::json& value);  // a number, or one number per axis

// Empty when |a-b| <= abs + rel*|b| everywhere, else the first and worst difference: CHECK_EQ(differs(...), "").
std::string differs(std::span<const float> a, std::span<const float> b, double rel, double abs);
std::string differs_bits(std::span<const float> a, std::span<const float> b, int max_ulp = 0);

}  // namespace lockstep::test

#include "support/golden.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>

#include "core/error.h"

namespace lockstep::test {

const nlohmann::json& golden(const std::string& file) {
  static std::map<std::string, nlohmann::json> cache;
  auto found = cache.find(file);
  if (found == cache.end()) {
    std::ifstream stream(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/golden/" + file);
    if (!stream) throw_error("no golden file {}", file);
    found = cache.emplace(file, nlohmann::json::parse(stream)).first;
  }
  return found->second;
}

template <class T>
static void flatten(const nlohmann::json& node, std::vector<T>& out) {
  if (node.is_array()) {
    for (const auto& child : node) flatten(child, out);
  } else if constexpr (std::is_same_v<T, float>) {
    out.push_back(static_cast<float>(node.get<double>()));
  } else {
    out.push_back(node.get<T>());
  }
}

std::vector<float> flat_f32(const nlohmann::json& nested) {
  std::vector<float> out;
  flatten(nested, out);
  return out;
}

std::vector<double> flat_f64(const nlohmann::json& nested) {
  std::vector<double> out;
  flatten(nested, out);
  return out;
}

std::vector<int64_t> flat_i64(const nlohmann::json& nested) {
  std::vector<int64_t> out;
  flatten(nested, out);
  return out;
}

Shape shape_of(const nlohmann::json& nested) {
  std::vector<int64_t> dims;
  for (const nlohmann::json* level = &nested; level->is_array(); level = &(*level)[0])
    dims.push_back(std::ssize(*level));
  return Shape(dims);
}

std::array<int64_t, 2> pair(const nlohmann::json& value) {
  if (value.is_array()) return {value[0].get<int64_t>(), value[1].get<int64_t>()};
  return {value.get<int64_t>(), value.get<int64_t>()};
}

std::string differs(std::span<const float> a, std::span<const float> b, double rel, double abs) {
  if (a.size() != b.size()) return fmt::format("sizes {} and {}", a.size(), b.size());
  double worst = -1;
  size_t where = 0, count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double excess = std::abs(double(a[i]) - double(b[i])) - (abs + rel * std::abs(double(b[i])));
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (both_nan || a[i] == b[i] || excess <= 0) continue;
    ++count;
    if (excess > worst || std::isnan(excess)) worst = excess, where = i;
  }
  if (count == 0) return "";
  return fmt::format("{} of {} differ, worst at [{}]: {:.9g} against {:.9g}", count, a.size(), where, a[where],
                     b[where]);
}

static int64_t ordered(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  return bits < 0 ? -static_cast<int64_t>(bits & 0x7fffffff) : bits;
}

std::string differs_bits(std::span<const float> a, std::span<const float> b, int max_ulp) {
  if (a.size() != b.size()) return fmt::format("sizes {} and {}", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const int64_t ulp = std::llabs(ordered(a[i]) - ordered(b[i]));
    if (ulp > max_ulp || std::isnan(a[i]) != std::isnan(b[i]))
      return fmt::format("[{}]: {:.9g} against {:.9g}, {} ulp", i, a[i], b[i], ulp);
  }
  return "";
}

}  // namespace lockstep::test

// Engine words, uniform reals, integers, permutations and Bernoulli masks of core/rng.h; normals are in rng_normal.cpp.
#include "core/rng.h"

#include <bit>
#include <cmath>
#include <sstream>
#include <utility>

#include "core/error.h"

namespace lockstep {

// From this size on PyTorch's randperm is another algorithm (inside-out, 64-bit draws): (2^32 - 1) / 20.
static constexpr int64_t kRandpermLimit = 214748364;

Generator::Generator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

uint32_t Generator::r32() {
  ++words_;
  return static_cast<uint32_t>(engine_());
}

uint64_t Generator::r64() {
  const uint64_t high = r32();
  return (high << 32) | r32();
}

float Generator::uniform_float() { return static_cast<float>(r32() & ((1U << 24) - 1)) * 0x1p-24f; }

double Generator::uniform_double() { return static_cast<double>(r64() & ((1ULL << 53) - 1)) * 0x1p-53; }

void Generator::discard(uint64_t words) {
  engine_.discard(words);
  words_ += words;
}

// Words drawn, the cached normal's bits (or "-"), the engine as the standard library writes it.
std::string Generator::state() const {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << words_ << ' ' << (cached_normal_ ? std::to_string(std::bit_cast<uint64_t>(*cached_normal_)) : "-") << ' '
       << engine_;
  return text.str();
}

void Generator::restore(const std::string& state) {
  std::istringstream text(state);
  text.imbue(std::locale::classic());
  uint64_t words = 0, bits = 0;
  std::string cached;
  std::mt19937 engine;
  text >> words >> cached >> engine;
  const bool none = cached == "-";
  std::istringstream cached_text(cached);
  if (!none) cached_text >> bits;
  if (text.fail() || cached_text.fail()) throw_error("saved state of a random generator: not readable");
  words_ = words;
  engine_ = engine;
  cached_normal_ = none ? std::nullopt : std::optional(std::bit_cast<double>(bits));
}

void Generator::uniform(std::span<float> out, double low, double high) {
  const auto from = static_cast<float>(low);
  const float range = static_cast<float>(high) - from;
  for (float& value : out) value = std::fma(uniform_float(), range, from);
}

int64_t Generator::random_int64() { return static_cast<int64_t>(r64() & ((1ULL << 63) - 1)); }

int64_t Generator::randint(int64_t low, int64_t high) {
  if (low >= high) throw_error("randint: expected low < high, found low {} and high {}", low, high);
  // In uint64 the difference is right even where it exceeds INT64_MAX. Plain modulo: PyTorch rejects nothing.
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t draw = range < (1ULL << 28) ? r32() : r64();
  return static_cast<int64_t>(static_cast<uint64_t>(low) + draw % range);
}

std::vector<int64_t> Generator::randperm(int64_t n) {
  if (n < 0 || n >= kRandpermLimit) throw_error("randperm: expected 0 <= n < {}, found {}", kRandpermLimit, n);
  std::vector<int64_t> permutation(static_cast<size_t>(n));
  randperm_into(permutation);
  return permutation;
}

void Generator::randperm_into(std::span<int64_t> out) {
  const size_t n = out.size();
  if (n >= static_cast<size_t>(kRandpermLimit)) throw_error("randperm: expected n < {}, found {}", kRandpermLimit, n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<int64_t>(i);
  for (size_t i = 0; i + 1 < n; ++i) std::swap(out[i], out[i + r32() % (n - i)]);
}

void Generator::bernoulli(std::span<uint8_t> keep, double p) {
  if (!(p >= 0 && p <= 1)) throw_error("bernoulli: expected a probability in [0, 1], found {}", p);
  for (uint8_t& value : keep) value = uniform_double() < p ? 1 : 0;
}

}  // namespace lockstep

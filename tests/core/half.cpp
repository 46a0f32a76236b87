// Conversions to and from the 16-bit types, against a plain search for the nearest number.
#include "core/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/cpu_features.h"
#include "core/rng.h"

using namespace lockstep;

namespace {

template <class T>
uint16_t narrowed(float x) {
  T out;
  narrow(x, out);
  return out.bits;
}

// The value of a pattern from the format's definition, in double. Not for infinities and NaN.
template <int kExponentBits, int kDigits>
double value_of(uint16_t bits) {
  const int bias = (1 << (kExponentBits - 1)) - 1;
  const int exponent = (bits >> kDigits) & ((1 << kExponentBits) - 1), digits = bits & ((1 << kDigits) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(digits, 1 - bias - kDigits)
                                         : std::ldexp(digits + (1 << kDigits), exponent - bias - kDigits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class T, int kExponentBits, int kDigits>
void check_format() {
  const uint16_t infinity = static_cast<uint16_t>(((1 << kExponentBits) - 1) << kDigits);
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float wide = widen(T{pattern});
    if ((pattern & 0x7fff) > infinity) {
      wrong += !std::isnan(wide) || (narrowed<T>(wide) & 0x7fff) <= infinity;
      continue;
    }
    const double expected = (pattern & 0x7fff) == infinity
                                ? std::copysign(std::numeric_limits<double>::infinity(), wide)
                                : value_of<kExponentBits, kDigits>(pattern);
    wrong += static_cast<double>(wide) != expected || std::signbit(wide) != ((pattern & 0x8000) != 0);
    wrong += narrowed<T>(wide) != pattern;
    // Between this number and the next: to the nearer one, halfway to the even one.
    if ((pattern & 0x7fff) >= infinity - 1) continue;
    const double next = value_of<kExponentBits, kDigits>(static_cast<uint16_t>(pattern + 1)),
                 middle = (expected + next) / 2;
    const auto below = static_cast<float>(middle - (next - expected) / 16),
               above = static_cast<float>(middle + (next - expected) / 16);
    if (std::abs(below) < std::numeric_limits<float>::min()) continue;  // not a normal fp32
    wrong += narrowed<T>(static_cast<float>(middle)) != ((pattern & 1) == 0 ? pattern : pattern + 1);
    wrong += narrowed<T>(below) != pattern;
    wrong += narrowed<T>(above) != pattern + 1;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every 16-bit number widens to its value and comes back and what lies between rounds to nearest even") {
  check_format<Bf16, 8, 7>();
  check_format<F16, 5, 10>();
}

TEST_CASE("fp16 overflows at 65520 and has subnormals whether or not the processor flushes them") {
  for (int flushed = 0; flushed < 2; ++flushed) {
    if (flushed == 1) flush_denormals();
    CHECK(widen(F16{narrowed<F16>(65519.0F)}) == 65504.0F);
    CHECK(std::isinf(widen(F16{narrowed<F16>(65520.0F)})));
    CHECK(widen(F16{narrowed<F16>(-1e30F)}) == -std::numeric_limits<float>::infinity());
    CHECK(widen(F16{narrowed<F16>(0x1p-24F)}) == 0x1p-24F);
    CHECK(widen(F16{narrowed<F16>(0x1.8p-24F)}) == 0x1p-23F);  // a tie, to the even one
    CHECK(narrowed<F16>(0x1p-25F) == 0);
    CHECK(narrowed<F16>(-0x1.1p-25F) == 0x8001);
    CHECK(narrowed<F16>(0x1p-130F) == 0);
  }
}

TEST_CASE("bf16 rounds the greatest floats to infinity and keeps a NaN whose digits lie low") {
  CHECK(std::isinf(widen(Bf16{narrowed<Bf16>(std::numeric_limits<float>::max())})));
  CHECK(std::isnan(widen(Bf16{narrowed<Bf16>(std::bit_cast<float>(0x7f800001U))})));
  CHECK(std::isnan(widen(F16{narrowed<F16>(std::bit_cast<float>(0xff800001U))})));
}

#include "comm/wire_format.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <limits>

#include "core/cpu_features.h"

namespace lockstep {
namespace {

// Integer arithmetic throughout: flush-to-zero modes of the calling thread change nothing.
[[gnu::always_inline]] inline uint16_t bf16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(nan ? (bits >> 16) | 0x40 : rounded);
}

[[gnu::always_inline]] inline float from_bf16_bits(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// One body per loop, inlined into a function per instruction set.
[[gnu::always_inline]] inline void pack_bf16_body(const float* __restrict from, uint16_t* __restrict to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = bf16_bits(from[i]);
}

[[gnu::always_inline]] inline void unpack_bf16_body(const uint16_t* __restrict from, float* __restrict to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = from_bf16_bits(from[i]);
}

// The bits of F16C's conversion, for processors without it and for the ends of arrays.
uint16_t fp16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above
  if (magnitude >= 0x38800000) {                      // 2^-14: normal, and a carry goes into the exponent
    const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
  }
  if (magnitude < 0x33000000) return sign;  // below half of the smallest, 2^-25
  const uint32_t shift = 126 - (magnitude >> 23);
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  const uint32_t quotient = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  const bool up = rest > half || (rest == half && (quotient & 1) != 0);
  return static_cast<uint16_t>(sign | (quotient + (up ? 1 : 0)));
}

float from_fp16_bits(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude > 0x7c00) return std::bit_cast<float>(sign | 0x7fc00000 | (magnitude & 0x1ff) << 13);
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000);
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  if (magnitude == 0) return std::bit_cast<float>(sign);
  const int zeros = std::countl_zero(magnitude) - 21;  // until the leading bit stands where a normal number's does
  const auto exponent = static_cast<uint32_t>(113 - zeros);
  return std::bit_cast<float>(sign | (exponent << 23) | (((magnitude << zeros) & 0x3ff) << 13));
}

void pack_fp16_rest(const float* from, uint16_t* to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = fp16_bits(from[i]);
}

void unpack_fp16_rest(const uint16_t* from, float* to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = from_fp16_bits(from[i]);
}

struct Kernels {
  void (*pack_bf16)(const float*, uint16_t*, size_t);
  void (*unpack_bf16)(const uint16_t*, float*, size_t);
  void (*pack_fp16)(const float*, uint16_t*, size_t);
  void (*unpack_fp16)(const uint16_t*, float*, size_t);
};

void pack_bf16_generic(const float* from, uint16_t* to, size_t n) { pack_bf16_body(from, to, n); }
void unpack_bf16_generic(const uint16_t* from, float* to, size_t n) { unpack_bf16_body(from, to, n); }
const Kernels generic = {pack_bf16_generic, unpack_bf16_generic, pack_fp16_rest, unpack_fp16_rest};

#if defined(__x86_64__)
[[gnu::target("avx2")]] void pack_bf16_avx2(const float* from, uint16_t* to, size_t n) { pack_bf16_body(from, to, n); }
[[gnu::target("avx2")]] void unpack_bf16_avx2(const uint16_t* from, float* to, size_t n) {
  unpack_bf16_body(from, to, n);
}
[[gnu::target("avx2,f16c")]] void pack_fp16_avx2(const float* from, uint16_t* to, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
  pack_fp16_rest(from + i, to + i, n - i);
}
[[gnu::target("avx2,f16c")]] void unpack_fp16_avx2(const uint16_t* from, float* to, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  unpack_fp16_rest(from + i, to + i, n - i);
}
const Kernels avx2 = {pack_bf16_avx2, unpack_bf16_avx2, pack_fp16_avx2, unpack_fp16_avx2};

[[gnu::target("avx512f,avx512bw,prefer-vector-width=512")]] void pack_bf16_avx512(const float* from, uint16_t* to,
                                                                                  size_t n) {
  pack_bf16_body(from, to, n);
}
[[gnu::target("avx512f,avx512bw,prefer-vector-width=512")]] void unpack_bf16_avx512(const uint16_t* from, float* to,
                                                                                    size_t n) {
  unpack_bf16_body(from, to, n);
}
const Kernels avx512 = {pack_bf16_avx512, unpack_bf16_avx512, pack_fp16_avx2, unpack_fp16_avx2};
#else
const Kernels& avx2 = generic;
const Kernels& avx512 = generic;
#endif

const Kernels& kernels() {
  static const Kernels& chosen = select_isa(generic, avx2, avx512);
  return chosen;
}

}  // namespace

WireFormat parse_wire_format(std::string_view text) {
  if (text == "none") return WireFormat::fp32;
  if (text == "bf16") return WireFormat::bf16;
  if (text == "fp16") return WireFormat::fp16;
  throw_error("distributed.compress: expected none, bf16 or fp16, found '{}'", text);
}

std::string_view name(WireFormat format) {
  if (format == WireFormat::fp32) return "fp32";
  return format == WireFormat::bf16 ? "bf16" : "fp16";
}

Collective sum_in(WireFormat format) {
  if (format == WireFormat::fp32) return Collective::all_reduce_sum;
  return format == WireFormat::bf16 ? Collective::all_reduce_sum_bf16 : Collective::all_reduce_sum_fp16;
}

float overflow_of(WireFormat format) {
  if (format == WireFormat::fp32) return std::numeric_limits<float>::infinity();
  return format == WireFormat::bf16 ? std::bit_cast<float>(0x7f7f8000) : 65520.0f;
}

void pack(WireFormat format, const float* from, uint16_t* to, size_t count) {
  (format == WireFormat::bf16 ? kernels().pack_bf16 : kernels().pack_fp16)(from, to, count);
}

void unpack(WireFormat format, const uint16_t* from, float* to, size_t count) {
  (format == WireFormat::bf16 ? kernels().unpack_bf16 : kernels().unpack_fp16)(from, to, count);
}

void round_to(WireFormat format, std::span<float> values) {
  if (format == WireFormat::fp32) return;
  constexpr size_t block = 1024;
  uint16_t packed[block];
  for (size_t at = 0; at < values.size(); at += block) {
    const size_t count = std::min(block, values.size() - at);
    pack(format, &values[at], packed, count);
    unpack(format, packed, &values[at], count);
  }
}

}  // namespace lockstep

// Rounding to 16 bits against the compiler's own conversions and against a search for the nearest number.
#include "comm/wire_format.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "comm/rounded_sums.h"
#include "core/cpu_features.h"

using namespace lockstep;

namespace {

constexpr WireFormat kFormats[] = {WireFormat::bf16, WireFormat::fp16};

// Every sign, exponent and a spread of mantissas, with the ends and middles between 16-bit numbers.
std::vector<float> interesting_floats() {
  std::vector<float> values;
  for (uint32_t top = 0; top < (1u << 16); ++top) {
    for (const uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(std::bit_cast<float>((top << 16) | low));
  }
  return values;
}

bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

float rounded(WireFormat format, float value) {
  round_to(format, {&value, 1});
  return value;
}

}  // namespace

TEST_CASE("half precision has the bits of the compiler's conversion") {
  size_t wrong = 0;
  for (const float value : interesting_floats()) {
    const float mine = rounded(WireFormat::fp16, value), other = static_cast<float>(static_cast<_Float16>(value));
    wrong += std::isnan(value) ? !std::isnan(mine) : !same(mine, other);
  }
  CHECK(wrong == 0);
}

TEST_CASE("every half is unpacked to its value and packed to itself") {
  for (const WireFormat format : kFormats) {
    size_t wrong = 0;
    for (uint32_t bits = 0; bits < (1u << 16); ++bits) {
      const auto packed = static_cast<uint16_t>(bits);
      float value = 0;
      unpack(format, &packed, &value, 1);
      uint16_t again = 0;
      pack(format, &value, &again, 1);
      if (std::isnan(value)) {
        wrong += (again & 0x7fff) <= (format == WireFormat::fp16 ? 0x7c00 : 0x7f80);
      } else {
        wrong += again != packed;
        if (format == WireFormat::fp16) wrong += !same(value, static_cast<float>(std::bit_cast<_Float16>(packed)));
        if (format == WireFormat::bf16) wrong += std::bit_cast<uint32_t>(value) != bits << 16;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("bf16 rounds to the nearest and ties to even") {
  size_t wrong = 0;
  for (const float value : interesting_floats()) {
    if (!std::isfinite(value)) continue;
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const double below = std::bit_cast<float>(bits & 0xffff0000);
    const float next = std::bit_cast<float>((bits & 0xffff0000) + 0x10000);
    // Behind the last finite number lies what would be the next one.
    const double above = std::isinf(next) ? std::copysign(std::ldexp(1.0, 128), below) : static_cast<double>(next);
    const double down = std::abs(value - below), up = std::abs(above - value);
    const bool keep = down < up || (down == up && (bits & 0x10000) == 0);
    wrong += !same(rounded(WireFormat::bf16, value), keep ? static_cast<float>(below) : next);
  }
  CHECK(wrong == 0);
}

TEST_CASE("vector and scalar loops give the same bits at any length") {
  std::vector<float> values = interesting_floats();
  for (const WireFormat format : kFormats) {
    std::vector<uint16_t> long_way(values.size()), one(1);
    pack(format, values.data(), long_way.data(), values.size());
    size_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      pack(format, &values[i], one.data(), 1);
      wrong += one[0] != long_way[i];
    }
    std::vector<float> back(values.size()), single(1);
    unpack(format, long_way.data(), back.data(), back.size());
    for (size_t i = 0; i < values.size(); ++i) {
      unpack(format, &long_way[i], single.data(), 1);
      wrong += !same(single[0], back[i]);
    }
    CHECK(wrong == 0);
    for (size_t count = 0; count < 70; ++count) {  // nothing is written behind the end
      std::vector<uint16_t> packed(count + 1, 77);
      pack(format, values.data() + 1000, packed.data(), count);
      CHECK(packed[count] == 77);
    }
  }
}

TEST_CASE("flushing denormals in the thread changes no bit") {
  const std::vector<float> values = interesting_floats();
  for (const WireFormat format : kFormats) {
    std::vector<uint16_t> before(values.size()), after(values.size());
    std::vector<float> unpacked(values.size()), unpacked_after(values.size());
    pack(format, values.data(), before.data(), values.size());
    unpack(format, before.data(), unpacked.data(), values.size());
    const auto mode = __builtin_ia32_stmxcsr();
    flush_denormals();
    pack(format, values.data(), after.data(), values.size());
    unpack(format, before.data(), unpacked_after.data(), values.size());
    __builtin_ia32_ldmxcsr(mode);
    CHECK(before == after);
    CHECK(std::memcmp(unpacked.data(), unpacked_after.data(), values.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("what overflows becomes infinite exactly from the limit on") {
  for (const WireFormat format : kFormats) {
    const float limit = overflow_of(format);
    CHECK(rounded(format, limit) == std::numeric_limits<float>::infinity());
    CHECK(rounded(format, -limit) == -std::numeric_limits<float>::infinity());
    CHECK(std::isfinite(rounded(format, std::nextafter(limit, 0.0f))));
  }
  CHECK(overflow_of(WireFormat::fp16) == 65520.0f);
  CHECK(parse_wire_format("none") == WireFormat::fp32);
  CHECK_THROWS_WITH(parse_wire_format("int8"), "distributed.compress: expected none, bf16 or fp16, found 'int8'");
}

TEST_CASE("packed arrays are added in float and rounded once") {
  constexpr size_t count = 2500;  // more than two blocks
  for (const WireFormat format : kFormats) {
    for (const int ranks : {1, 2, 3, 5}) {
      std::vector<std::vector<float>> values(ranks, std::vector<float>(count));
      std::vector<std::vector<uint16_t>> packed(ranks, std::vector<uint16_t>(count));
      std::vector<const uint16_t*> pointers(ranks);
      std::vector<float*> arrays(ranks);
      std::vector<const float*> addends(ranks);
      for (int r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < count; ++i)
          values[r][i] = std::sin(0.37f * static_cast<float>(i) + static_cast<float>(r));
        round_to(format, values[r]);
        pack(format, values[r].data(), packed[r].data(), count);
        pointers[r] = packed[r].data(), arrays[r] = values[r].data(), addends[r] = values[r].data();
      }
      std::vector<float> wanted(count), found(count);
      for (size_t i = 0; i < count; ++i) {
        double sum =
            0;  // of a few numbers with 11 bits: exact, and float's rounding first is harmless only if it is, too
        for (int r = 0; r < ranks; ++r) sum += values[r][i];
        wanted[i] = rounded(format, static_cast<float>(sum));
      }
      PackedSums sums(ranks);
      sums.sum(format, pointers.data(), count, packed[0].data());
      unpack(format, packed[0].data(), found.data(), count);
      CHECK(found == wanted);
      sum_into_all_in(format, arrays.data(), ranks, count);
      for (int r = 0; r < ranks; ++r) CHECK(values[r] == wanted);
    }
  }
}

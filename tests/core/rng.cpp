// Every case of golden/rng.json: values, words consumed and the uniform drawn right after.
#include "core/rng.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "support/golden.h"

using lockstep::Error;
using lockstep::Generator;
using lockstep::test::differs_bits;
using lockstep::test::flat_f32;
using lockstep::test::flat_f64;
using lockstep::test::flat_i64;
using lockstep::test::golden;
using nlohmann::json;

namespace {

uint64_t seed_of(const json& test_case) { return static_cast<uint64_t>(test_case["seed"].get<int64_t>()); }

// Runs `check(generator, case)` on each case of a kind, then compares what the generator is left with.
template <class Check>
void for_each_case(const std::string& kind, Check check) {
  const json cases = golden("rng.json")["cases"];
  int found = 0;
  for (const json& test_case : cases) {
    if (test_case["kind"] != kind) continue;
    ++found;
    CAPTURE(test_case["seed"].dump());
    CAPTURE(test_case.value("n", int64_t{0}));
    Generator generator(seed_of(test_case));
    check(generator, test_case);
    if (test_case.contains("words")) CHECK_EQ(generator.words(), test_case["words"].get<uint64_t>());
    CHECK_EQ(generator.uniform_float(), static_cast<float>(test_case["next_rand"].get<double>()));
  }
  CHECK_GT(found, 0);
}

// CRC-32 (IEEE) of int64 values as little-endian bytes, the checksum of the long permutations.
uint32_t crc32(const std::vector<int64_t>& values) {
  uint32_t crc = ~0U;
  for (const int64_t value : values) {
    for (int byte = 0; byte < 8; ++byte) {
      crc ^= static_cast<uint32_t>(static_cast<uint64_t>(value) >> (8 * byte)) & 0xffU;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
    }
  }
  return ~crc;
}

}  // namespace

TEST_CASE("golden file holds only kinds that are tested here") {
  const std::set<std::string> tested = {"rand",         "randn",      "randint", "randn_f64", "dropout",
                                        "random_int64", "uniform_",   "normal_", "rand_f64",  "cache_mix",
                                        "cache_mix2",   "bernoulli_", "randperm"};
  const json cases = golden("rng.json")["cases"];
  for (const json& test_case : cases) CHECK(tested.count(test_case["kind"].get<std::string>()) == 1);
}

TEST_CASE("rand equals PyTorch") {
  for_each_case("rand", [](Generator& generator, const json& test_case) {
    std::vector<float> values(test_case["n"].get<size_t>());
    generator.uniform(values, 0, 1);
    CHECK_EQ(differs_bits(values, flat_f32(test_case["values"])), "");
  });
}

TEST_CASE("rand in double equals PyTorch") {
  for_each_case("rand_f64", [](Generator& generator, const json& test_case) {
    for (const double expected : flat_f64(test_case["values"])) CHECK_EQ(generator.uniform_double(), expected);
  });
}

TEST_CASE("uniform between bounds is fused like PyTorch's") {
  for_each_case("uniform_", [](Generator& generator, const json& test_case) {
    std::vector<float> values(test_case["n"].get<size_t>());
    generator.uniform(values, test_case["lo"].get<double>(), test_case["hi"].get<double>());
    CHECK_EQ(differs_bits(values, flat_f32(test_case["values"])), "");
  });
}

TEST_CASE("randn equals PyTorch in the short and the block path") {
  for_each_case("randn", [](Generator& generator, const json& test_case) {
    std::vector<float> values(test_case["n"].get<size_t>());
    generator.normal(values);
    CHECK_EQ(differs_bits(values, flat_f32(test_case["values"])), "");
  });
}

TEST_CASE("randn in double equals PyTorch to 1 ulp") {
  for_each_case("randn_f64", [](Generator& generator, const json& test_case) {
    std::vector<double> values(test_case["n"].get<size_t>());
    generator.normal(values);
    const std::vector<double> expected = flat_f64(test_case["values"]);
    REQUIRE_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK_GE(values[i], std::nextafter(expected[i], -INFINITY));
      CHECK_LE(values[i], std::nextafter(expected[i], INFINITY));
    }
  });
}

TEST_CASE("normal with mean and deviation equals PyTorch") {
  for_each_case("normal_", [](Generator& generator, const json& test_case) {
    std::vector<float> values(test_case["n"].get<size_t>());
    generator.normal(values, test_case["mean"].get<double>(), test_case["std"].get<double>());
    CHECK_EQ(differs_bits(values, flat_f32(test_case["values"])), "");
  });
}

TEST_CASE("the cached sine survives draws of other kinds") {
  const auto check = [](std::vector<int> sizes, size_t uniform_at) {
    return [=](Generator& generator, const json& test_case) {
      REQUIRE_EQ(test_case["values"].size(), sizes.size());
      for (size_t i = 0; i < sizes.size(); ++i) {
        std::vector<float> values(static_cast<size_t>(sizes[i]));
        i == uniform_at ? generator.uniform(values, 0, 1) : generator.normal(values);
        CHECK_EQ(differs_bits(values, flat_f32(test_case["values"][i])), "");
      }
    };
  };
  for_each_case("cache_mix", check({1, 1, 1, 2, 16, 1}, 2));
  for_each_case("cache_mix2", check({3, 1, 16, 1, 1}, 1));
}

TEST_CASE("random int64 equals PyTorch") {
  for_each_case("random_int64", [](Generator& generator, const json& test_case) {
    for (const int64_t expected : flat_i64(test_case["values"])) CHECK_EQ(generator.random_int64(), expected);
  });
}

TEST_CASE("randint equals PyTorch on both sides of the range 2^28") {
  for_each_case("randint", [](Generator& generator, const json& test_case) {
    const auto low = test_case["lo"].get<int64_t>();
    const auto high = test_case["hi"].get<int64_t>();
    for (const int64_t expected : flat_i64(test_case["values"])) CHECK_EQ(generator.randint(low, high), expected);
  });
}

TEST_CASE("randperm equals PyTorch") {
  for_each_case("randperm", [](Generator& generator, const json& test_case) {
    const std::vector<int64_t> permutation = generator.randperm(test_case["n"].get<int64_t>());
    if (test_case.contains("values")) {
      CHECK_EQ(permutation, flat_i64(test_case["values"]));
    } else {
      CHECK_EQ(std::vector<int64_t>(permutation.begin(), permutation.begin() + 8), flat_i64(test_case["first8"]));
      CHECK_EQ(std::vector<int64_t>(permutation.end() - 8, permutation.end()), flat_i64(test_case["last8"]));
      CHECK_EQ(crc32(permutation), test_case["crc32"].get<uint32_t>());
    }
  });
}

TEST_CASE("bernoulli equals PyTorch") {
  for_each_case("bernoulli_", [](Generator& generator, const json& test_case) {
    std::vector<uint8_t> keep(test_case["n"].get<size_t>());
    generator.bernoulli(keep, test_case["p"].get<double>());
    CHECK_EQ(std::vector<int64_t>(keep.begin(), keep.end()), flat_i64(test_case["values"]));
  });
}

TEST_CASE("dropout of 1 to 20 through bernoulli equals PyTorch") {
  for_each_case("dropout", [](Generator& generator, const json& test_case) {
    const double p = test_case["p"].get<double>();
    std::vector<uint8_t> keep(test_case["n"].get<size_t>());
    generator.bernoulli(keep, 1 - p);
    std::vector<float> values(keep.size());
    const float scale = 1.0f / static_cast<float>(1 - p);
    for (size_t i = 0; i < keep.size(); ++i)
      values[i] = static_cast<float>(i + 1) * (static_cast<float>(keep[i]) * scale);
    CHECK_EQ(differs_bits(values, flat_f32(test_case["values"])), "");
  });
}

TEST_CASE("only the low 32 bits of the seed count") {
  Generator small(5), large((1ULL << 32) + 5);
  for (int i = 0; i < 10; ++i) CHECK_EQ(small.r32(), large.r32());
}

TEST_CASE("discard skips words and counts them") {
  Generator stepped(7), skipped(7);
  for (int i = 0; i < 1000; ++i) stepped.r32();
  skipped.discard(1000);
  CHECK_EQ(stepped.r32(), skipped.r32());
  CHECK_EQ(stepped.words(), skipped.words());
}

TEST_CASE("impossible requests are errors") {
  Generator generator(0);
  CHECK_THROWS_AS(generator.randint(3, 3), Error);
  CHECK_THROWS_AS(generator.randperm(-1), Error);
  CHECK_THROWS_AS(generator.randperm(214748364), Error);
  std::vector<uint8_t> keep(1);
  CHECK_THROWS_AS(generator.bernoulli(keep, 1.5), Error);
  CHECK_EQ(generator.words(), 0);
}

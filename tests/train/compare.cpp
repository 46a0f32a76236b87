// Tensors side by side: equal, different, missing, of other shapes; tolerances; files beside checkpoints.
#include "train/saved/compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "checkpoint_support.h"
#include "core/error.h"
#include "train/checkpoint/tensor_writer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using Kind = TensorDifference::Kind;

struct Files {
  TempDir dir;
  Comparison compare(const std::vector<TensorSource>& a, const std::vector<TensorSource>& b,
                     const Tolerance& tolerance = {}) {
    const Directory folder = Directory::open(dir.path());
    for (const char* name : {"a.safetensors", "b.safetensors"}) folder.remove(name);
    write_tensor_file(folder, "a.safetensors", a);
    write_tensor_file(folder, "b.safetensors", b);
    return compare_saved(dir.path() + "/a.safetensors", dir.path() + "/b.safetensors", tolerance);
  }
};

}  // namespace

TEST_CASE("compare: the largest absolute and relative difference of each tensor are told") {
  Files files;
  const Comparison found = files.compare({floats("x", {3}, {1, 2, -4}), floats("y", {1}, {7})},
                                         {floats("x", {3}, {1.5, 2, -5}), floats("y", {1}, {7})});
  REQUIRE(found.tensors.size() == 2);
  CHECK(found.tensors[0].kind == Kind::different);
  CHECK(found.tensors[0].absolute == 1);
  CHECK(found.tensors[0].relative == doctest::Approx(0.5 / 1.5));
  CHECK(found.tensors[0].beyond == 2);
  CHECK(found.tensors[1].kind == Kind::equal);
  CHECK_FALSE(found.equal());
  const std::string text = comparison_text(found, false);
  CHECK(text.find("x  largest difference 1, relative 0.333333, 2 of 3 values") != std::string::npos);
  CHECK(text.find("1 of 2 tensors differ") != std::string::npos);
  CHECK(text.find("y  equal") == std::string::npos);
  CHECK(comparison_text(found, true).find("y  equal") != std::string::npos);
}

TEST_CASE("compare: missing extra and misshapen tensors are named") {
  Files files;
  const Comparison found =
      files.compare({floats("gone", {2}, {1, 2}), floats("turned", {2, 1}, {1, 2}), floats("w", {}, {1})},
                    {floats("new", {1}, {1}), floats("turned", {1, 2}, {1, 2}), floats("w", {}, {1})});
  const std::string text = comparison_text(found, false);
  CHECK(text.find("gone    [2] in the first only") != std::string::npos);
  CHECK(text.find("new     [1] in the second only") != std::string::npos);
  CHECK(text.find("turned  shapes [2, 1] and [1, 2]") != std::string::npos);
  CHECK(text.find("3 of 4 tensors differ") != std::string::npos);
}

TEST_CASE("compare: tolerances are those of numpy and NaN equals NaN only") {
  Files files;
  const auto equal = [&](float a, float b, const Tolerance& tolerance = {}) {
    return files.compare({floats("x", {1}, {a})}, {floats("x", {1}, {b})}, tolerance).equal();
  };
  CHECK(equal(0.0F, -0.0F));
  CHECK(equal(kNan, kNan));
  CHECK_FALSE(equal(kNan, 1, {.absolute = 1e9, .relative = 1e9}));
  CHECK(equal(1, 1.25F, {.absolute = 0.25}));
  CHECK_FALSE(equal(1, 1.25F, {.absolute = 0.24}));
  CHECK(equal(4, 5, {.relative = 0.2}));
  CHECK_FALSE(equal(5, 4, {.relative = 0.2}));
  CHECK(equal(INFINITY, INFINITY));
  CHECK_FALSE(equal(INFINITY, -INFINITY, {.absolute = 1e30}));
}

TEST_CASE("compare: types may differ where values are equal and integers are compared exactly") {
  Files files;
  CHECK(files.compare({floats("x", {1}, {1})}, {tensor<double>("x", TensorType::f64, {1}, {1.0})}).equal());
  const int64_t large = (int64_t{1} << 40) + 1;
  CHECK_FALSE(files
                  .compare({tensor<int64_t>("n", TensorType::i64, {1}, {large})},
                           {tensor<int64_t>("n", TensorType::i64, {1}, {large + 1})})
                  .equal());
}

TEST_CASE("compare: a checkpoint beside a file is its model and beside a checkpoint everything it holds") {
  TempDir dir;
  const CheckpointFolder folder(dir.path() + "/checkpoints", {});
  folder.prepare();
  const std::string first = folder.write(snapshot(3), false), second = folder.write(snapshot(4), false);
  CHECK(compare_saved(first, first, {}).equal());
  CHECK(compare_saved(first, first, {}).tensors.size() == 4);
  CHECK(compare_saved(dir.path(), second, {}).equal());  // the newest of a run
  CHECK_FALSE(compare_saved(first, second, {}).equal());
  CHECK(compare_saved(first + "/model.safetensors", first, {}).equal());
  CHECK(compare_saved(first, first + "/model.safetensors", {}).tensors.size() == 3);
  CHECK_THROWS_AS(compare_saved(first, dir.path() + "/none", {}), Error);
}

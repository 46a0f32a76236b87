// safetensors files: what is written is read, byte for byte as the format says, and a hostile header is an error.
#include <doctest/doctest.h>

#include <limits>

#include "checkpoint_support.h"
#include "train/checkpoint/tensor_writer.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string written(const std::vector<TensorSource>& tensors) {
  const TempDir dir;
  const Directory directory = Directory::open(dir.path());
  const FileSum sum = write_tensor_file(directory, "a.safetensors", tensors);
  const std::string bytes = file_bytes(dir.path() + "/a.safetensors");
  CHECK_EQ(sum.size, bytes.size());
  CHECK_EQ(sum.size, tensor_file_bytes(tensors));
  return bytes;
}

std::string refusal(const std::string& bytes) {
  return error_of([&] { TensorFile::parse(to_bytes(bytes), "f"); });
}
std::string header_refusal(const std::string& header, size_t data = 4) {
  return refusal(safetensors(header, std::string(data, 'x')));
}

}  // namespace

TEST_CASE("a tensor file holds what was written") {
  const TensorFile file = TensorFile::parse(to_bytes(written({
                                                floats("w", {2, 2}, {1, 2, 3, 4}),
                                                tensor<double>("d", TensorType::f64, {1}, {0.1}),
                                                tensor<uint16_t>("h", TensorType::f16, {2}, {0x3c00, 0xfc00}),
                                                tensor<uint16_t>("b", TensorType::bf16, {1}, {0x3f80}),
                                                tensor<int64_t>("n", TensorType::i64, {}, {7}),
                                                tensor<int32_t>("i", TensorType::i32, {2}, {-1, 5}),
                                                tensor<uint8_t>("u", TensorType::u8, {3}, {0, 128, 255}),
                                                floats("empty", {0, 3}, {}),
                                            })),
                                            "f");
  CHECK_EQ(file.entries().size(), 8);
  CHECK_EQ(file.floats("w"), std::vector<float>{1, 2, 3, 4});
  CHECK_EQ(file.floats("d"), std::vector<float>{0.1F});
  CHECK_EQ(file.floats("h"), std::vector<float>{1, -std::numeric_limits<float>::infinity()});
  CHECK_EQ(file.floats("b"), std::vector<float>{1});
  CHECK_EQ(file.floats("n"), std::vector<float>{7});
  CHECK_EQ(file.floats("i"), std::vector<float>{-1, 5});
  CHECK_EQ(file.floats("u"), std::vector<float>{0, 128, 255});
  CHECK(file.floats("empty").empty());
  CHECK_EQ(file.find("w")->shape, std::vector<int64_t>{2, 2});
  CHECK(file.find("n")->shape.empty());
  CHECK_EQ(file.find("x"), nullptr);
  CHECK_EQ(file.metadata().at("format"), "pt");
  CHECK_EQ(error_of([&] { file.floats("x"); }), "f: holds no 'x'");
}

TEST_CASE("the bytes of a tensor file are those of the format whatever the order of the tensors") {
  const TensorSource a = floats("a", {1}, {1}), b = floats("b", {2}, {2, 3}),
                     n = tensor<int64_t>("n", TensorType::i64, {}, {7});
  const std::string bytes = written({b, n, a});
  CHECK_EQ(written({a, b, n}), bytes);
  std::string header =
      R"({"__metadata__":{"format":"pt"},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})";
  while (header.size() % 8 != 0) header += ' ';
  CHECK_EQ(bytes, safetensors(header, std::string("\7\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40", 20)));
}

TEST_CASE("a file without tensors is one") {
  CHECK(TensorFile::parse(to_bytes(written({})), "f").entries().empty());
  CHECK(TensorFile::parse(to_bytes(safetensors("{}", "")), "f").entries().empty());
}

TEST_CASE("names of tensors that cannot be written") {
  CHECK_EQ(error_of([] { written({floats("a", {1}, {1}), floats("a", {1}, {1})}); }), "two tensors are named 'a'");
  CHECK(has(error_of([] { written({floats("\xff", {1}, {1})}); }), "is not UTF-8"));
  CHECK_EQ(TensorFile::parse(to_bytes(written({floats("\"\\\n\xC3\xA4", {1}, {5})})), "f").floats("\"\\\n\xC3\xA4"),
           std::vector<float>{5});
  CHECK(has(error_of([] { written({floats("a", {-1}, {})}); }), "its shape has no size"));
}

TEST_CASE("lengths of the header that are no length") {
  CHECK_EQ(refusal(""), "f: expected a safetensors file, found 0 bytes");
  CHECK_EQ(refusal(std::string("\1\0\0", 3)), "f: expected a safetensors file, found 3 bytes");
  const std::string huge = std::string("\0\0\0\0\0\0\0\x80", 8);
  CHECK(has(refusal(huge + "{}"), "expected a header of 100000000 bytes at most, found 9223372036854775808"));
  CHECK(has(refusal(std::string(8, '\xff') + "{}"), "found 18446744073709551615"));
  const std::string claim = std::string("\0\xe1\xf5\5\0\0\0\0", 8);  // 100 MB
  CHECK_EQ(refusal(claim + "{}"),
           "f: expected a header of 100000000 bytes, found 2: truncated, or no safetensors file");
}

TEST_CASE("headers that are no header") {
  for (const char* header : {"", " {}", "[]", "null", "\"a\"", "{", "{}}", "{}x", "{\"a\":1}", "{\"a\":[]}",
                             "{\"a\":null}", "{\"a\":\"x\"}", "{\"a\":{}}", "{\"__metadata__\":{\"a\":1}}",
                             "{\"__metadata__\":{\"a\":{}}}", "{\"__metadata__\":{\"a\":[]}}", "{\"\xff\":{}}"}) {
    CAPTURE(header);
    CHECK(header_refusal(header, 0).starts_with("f: "));
  }
  CHECK_EQ(header_refusal(R"({"a":{"dtype":"F32","shape":[1]}})"),
           "f: header: unexpected at 'a': 'a' without dtype, shape or data_offsets");
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})"), "the key 'x'"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,4]}})"), "the type 'C64'"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})"), "a number where none belongs"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})"), "the number 1.0"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"), "the size -1"));
  CHECK(
      has(header_refusal(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})"), "a list where none belongs"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})"), "data_offsets with 1 numbers"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})"), "more than 2 numbers"));
}

TEST_CASE("keys and names that are there twice") {
  const std::string one = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  CHECK_EQ(header_refusal("{" + one + "}"), "no error");
  CHECK_EQ(header_refusal("{" + one + "," + one + "}"), "f: header: 'a' is there twice");
  CHECK_EQ(header_refusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})"),
           "f: header: 'dtype' is there twice");
  CHECK_EQ(header_refusal(R"({"a":{"dtype":"U8","shape":[],"shape":[4],"data_offsets":[0,4]}})"),
           "f: header: 'shape' is there twice");
  CHECK_EQ(header_refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"data_offsets":[0,4]}})"),
           "f: header: 'data_offsets' is there twice");
  CHECK_EQ(header_refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), "f: header: '__metadata__' is there twice");
  CHECK_EQ(header_refusal(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "f: header: 'k' is there twice");
}

TEST_CASE("offsets and shapes that do not fit the bytes") {
  const auto two = [](const char* first, const char* second, size_t data) {
    return header_refusal(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},)"
                                      R"("b":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                                      first, second),
                          data);
  };
  CHECK_EQ(two("[0,4]", "[4,8]", 8), "no error");
  CHECK_EQ(two("[4,8]", "[0,4]", 8), "no error");
  CHECK(has(two("[0,4]", "[2,6]", 8), "'b': expected bytes from 4 on, found 2 to 6: the tensors overlap"));
  CHECK(has(two("[0,4]", "[0,4]", 8), "'b': expected bytes from 4 on, found 0 to 4"));
  CHECK(has(two("[0,4]", "[5,9]", 9), "'b': expected bytes from 4 on, found 5 to 9"));
  CHECK(has(two("[1,5]", "[5,9]", 9), "'a': expected bytes from 0 on, found 1 to 5"));
  CHECK(has(two("[0,4]", "[8,4]", 8), "found 8 to 4"));
  CHECK_EQ(two("[0,4]", "[4,8]", 7), "f: expected 8 bytes of tensors, found 7");
  CHECK_EQ(two("[0,4]", "[4,8]", 9), "f: expected 8 bytes of tensors, found 9");
  CHECK(has(two("[0,3]", "[3,7]", 7), "'a': U8 of shape [4] has 4 bytes, found 3"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
            "has more than 2^64 bytes, found 0"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
            "has more than 2^64 bytes, found 0"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]}})"),
            "the size 9223372036854775808"));
  CHECK(has(header_refusal(R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,4]}})"),
            "the number 99999999999999999999"));
}

TEST_CASE("deep and long headers end quickly") {
  std::string many(1 << 20, '[');
  CHECK(has(header_refusal("{\"a\":" + many), "a list where none belongs"));
  std::string deep;
  while (deep.size() < (1 << 20)) deep += "{\"dtype\":";
  CHECK(has(header_refusal(deep), "a map where none belongs"));
  std::string shape = "1";
  for (int i = 0; i < 64; ++i) shape += ",1";
  CHECK(has(header_refusal(R"({"a":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,4]}})"),
            "more than 64 dimensions"));
  CHECK(has(header_refusal("{\"" + std::string(5000, 'a') + "\":{}}"), "a name of more than 4096 bytes"));
}

// The .npy reader against files as numpy writes them, and against damaged ones.
#include "data/npy.h"

#include <doctest/doctest.h>

#include <cstring>

#include "data/files.h"
#include "data/rows.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string header(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

std::string npy(std::string text, const std::string& data, int version = 1) {
  const size_t fixed = version == 1 ? 10 : 12;
  while ((text.size() + 1 + fixed) % 64 != 0) text += ' ';
  text += '\n';
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (size_t byte = 0; byte < fixed - 8; ++byte) out += static_cast<char>(text.size() >> (8 * byte));
  return out + text + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

struct Npy {
  TempDir dir;
  DatasetSettings settings;
  explicit Npy(const std::string& x, const std::string& y = npy(header("<i8", "(2,)"), raw<int64_t>({1, 0}))) {
    settings.kind = "npy";
    settings.x = dir.write("x.npy", x);
    settings.y = dir.write("y.npy", y);
  }
  std::string error() const {
    return error_of([&] { make_npy(settings); });
  }
};

const std::string kX = npy(header("<f4", "(2, 3)"), raw<float>({1, 2, 3, 4, 5, 6}));

}  // namespace

TEST_CASE("npy element types are converted to float") {
  const std::vector<float> expected{1, 2, 3, 4, 5, 6};
  CHECK_EQ(read_all(*make_npy(Npy(kX).settings)).x, expected);
  CHECK_EQ(read_all(*make_npy(Npy(npy(header("<f8", "(2, 3)"), raw<double>({1, 2, 3, 4, 5, 6}))).settings)).x,
           expected);
  CHECK_EQ(read_all(*make_npy(Npy(npy(header("<i4", "(2, 3)"), raw<int32_t>({1, 2, 3, 4, 5, 6}))).settings)).x,
           expected);
  CHECK_EQ(read_all(*make_npy(Npy(npy(header("<i8", "(2, 3)"), raw<int64_t>({1, 2, 3, 4, 5, 6}))).settings)).x,
           expected);
}

TEST_CASE("npy bytes are scaled like pixels") {
  Npy files(npy(header("|u1", "(2, 1, 1, 2)"), raw<uint8_t>({0, 255, 51, 1})));
  files.settings.mean = 0.5;
  files.settings.std = 0.25;
  const auto dataset = make_npy(files.settings);
  CHECK_EQ(dataset->sample_shape().str(), "[1, 1, 2]");
  CHECK_EQ(read_all(*dataset).x, std::vector<float>{-2, 2, (51 / 255.0F - 0.5F) / 0.25F, (1 / 255.0F - 0.5F) / 0.25F});
}

TEST_CASE("npy versions 2 and 3 have a longer header length") {
  for (int version : {1, 2, 3}) {
    const Npy files(npy(header("<f4", "(2, 3)"), raw<float>({1, 2, 3, 4, 5, 6}), version));
    CHECK_EQ(make_npy(files.settings)->sample_shape().str(), "[3]");
  }
  CHECK(has(Npy(npy(header("<f4", "(2, 3)"), "", 4)).error(), "npy format version: expected 1, 2 or 3, found 4"));
}

TEST_CASE("npy integer targets are labels and float targets are values") {
  const auto labels = make_npy(Npy(kX, npy(header("|u1", "(2, 1)"), raw<uint8_t>({3, 1}))).settings);
  CHECK_EQ(labels->classes(), 4);
  CHECK_EQ(read_all(*labels).labels, std::vector<int64_t>{3, 1});
  Npy floats(kX, npy(header("<f8", "(2, 2)"), raw<double>({0.5, 1, 1.5, 2})));
  const auto values = make_npy(floats.settings);
  CHECK_EQ(values->target_width(), 2);
  CHECK_EQ(read_rows(*values, {1, 0}).targets, std::vector<float>{1.5F, 2, 0.5F, 1});
  floats.settings.targets = WantedTargets::labels;
  CHECK_EQ(
      floats.error(),
      floats.settings.y + ": the loss needs class indices: expected integer labels, found 2 real numbers per sample");
}

TEST_CASE("npy one-dimensional samples are single features") {
  CHECK_EQ(make_npy(Npy(npy(header("<f4", "(2,)"), raw<float>({1, 2}))).settings)->sample_shape().str(), "[1]");
}

TEST_CASE("npy Fortran order and other types are refused by name") {
  const Npy fortran(npy(header("<f4", "(2, 3)", "True"), raw<float>({1, 2, 3, 4, 5, 6})));
  CHECK_EQ(fortran.error(),
           fortran.settings.x + ": expected C order, found Fortran order: save numpy.ascontiguousarray(array)");
  for (const char* type : {">f4", "<f2", "|b1", "<U8", "|O"}) {
    const Npy other(npy(header(type, "(2, 3)"), std::string(24, '\0')));
    CHECK_EQ(other.error(), other.settings.x + ": npy element type: expected <f4, <f8, <i4, <i8 or |u1, found " + type);
  }
}

TEST_CASE("npy files with too few or too many bytes") {
  const Npy few(kX.substr(0, kX.size() - 4));
  CHECK_EQ(few.error(), few.settings.x + ": expected 24 bytes of data for shape (2, 3), found 20");
  const Npy many(kX + "x");
  CHECK_EQ(many.error(), many.settings.x + ": expected 24 bytes of data for shape (2, 3), found 25");
  const Npy huge(npy(header("<f8", "(4611686018427387904, 3)"), ""));
  CHECK(has(huge.error(), "passes 2^63"));
  const Npy terabytes(npy(header("<f8", "(1099511627776, 3)"), ""));
  CHECK(has(terabytes.error(), "expected 26388279066624 bytes"));
}

TEST_CASE("npy headers that are not a header") {
  CHECK(has(Npy("PK\3\4 a zip file").error(), "expected an .npy file"));
  CHECK(has(Npy(kX.substr(0, 7)).error(), "expected 8 bytes of npy magic, found 7"));
  CHECK(has(Npy(kX.substr(0, 60)).error(), "of npy header, found 50"));
  CHECK(has(Npy(npy("{'descr': '<f4'}", "")).error(), "expected the keys descr, fortran_order and shape"));
  CHECK(has(Npy(npy("{'descr': [('a', '<f4')]}", "")).error(), "expected a quoted word at byte 10"));
  CHECK(has(Npy(npy(header("<f4", "(2, -3)"), "")).error(), "expected a dimension"));
  CHECK(has(Npy(npy(header("<f4", "(2, 99999999999999999999)"), "")).error(), "expected a dimension"));
  CHECK(has(Npy(npy(header("<f4", "(2, 3"), "")).error(), "expected a dimension"));
  CHECK(has(Npy(npy("{'other': 1}", "")).error(), "found 'other'"));
  CHECK(has(Npy(npy(header("<f4", "(2, 3)") + " extra", "")).error(), "expected the end of the header"));
}

TEST_CASE("npy header cut anywhere is an error and nothing worse") {
  const std::string text = header("<f4", "(2, 3)");
  for (size_t length = 0; length < text.size(); ++length) {
    CHECK_NE(error_of([&] { parse_npy_header(std::string_view(text).substr(0, length), "f"); }), "no error");
  }
  CHECK_EQ(parse_npy_header(text, "f").shape, std::vector<int64_t>{2, 3});
}

TEST_CASE("npy samples and targets that differ in number") {
  const Npy files(kX, npy(header("<i8", "(3,)"), raw<int64_t>({0, 1, 0})));
  CHECK_EQ(files.error(),
           files.settings.y + ": expected 2 targets, one for each sample of " + files.settings.x + ", found 3");
}

TEST_CASE("npy label out of range names the row") {
  Npy files(kX);
  files.settings.classes = 1;
  CHECK_EQ(files.error(), files.settings.y + ": label of row 0: expected 0 to 0, found 1");
}

// The IDX reader: what it reads, and what it says about files that are damaged or don't fit together.
#include "data/idx.h"

#include <doctest/doctest.h>

#include "data/files.h"
#include "data/rows.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Pair {
  TempDir dir;
  DatasetSettings settings;
  Pair(const std::string& images, const std::string& labels) {
    settings.kind = "idx";
    settings.images = dir.write("images", images);
    settings.labels = dir.write("labels", labels);
  }
  std::string error() const {
    return error_of([&] { make_idx(settings); });
  }
};

const std::string kLabels3 = idx({3}, std::string("\0\2\1", 3));

}  // namespace

TEST_CASE("idx images become normalised floats in PyTorch's order of operations") {
  Pair files(idx({3, 10, 9}, ramp(270)), kLabels3);
  files.settings.mean = 0.1307;
  files.settings.std = 0.3081;
  const auto dataset = make_idx(files.settings);
  CHECK_EQ(dataset->size(), 3);
  CHECK_EQ(dataset->sample_shape().str(), "[1, 10, 9]");
  CHECK_EQ(dataset->classes(), 3);
  const Rows all = read_all(*dataset);
  CHECK_EQ(all.labels, std::vector<int64_t>{0, 2, 1});
  for (size_t i = 0; i < all.x.size(); ++i) {
    const float scaled = static_cast<float>(i % 256) / 255.0F;
    CHECK_EQ(all.x[i], (scaled - 0.1307F) / 0.3081F);
  }
}

TEST_CASE("idx files are recognised as gzip by their content") {
  const Pair plain(idx({3, 4, 5}, ramp(60)), kLabels3);
  const Pair packed(gzip(idx({3, 4, 5}, ramp(60))), gzip(kLabels3));
  CHECK_EQ(read_all(*make_idx(plain.settings)).x, read_all(*make_idx(packed.settings)).x);
}

TEST_CASE("idx gzip files may have several members") {
  const std::string bytes = idx({3, 4, 5}, ramp(60));
  const Pair files(gzip(bytes.substr(0, 30)) + gzip(bytes.substr(30)), kLabels3);
  CHECK_EQ(read_all(*make_idx(files.settings)).x.back(), 59 / 255.0F);
}

TEST_CASE("idx images with channels and flat samples keep their shape") {
  CHECK_EQ(make_idx(Pair(idx({3, 3, 2, 2}, ramp(36)), kLabels3).settings)->sample_shape().str(), "[3, 2, 2]");
  CHECK_EQ(make_idx(Pair(idx({3, 7}, ramp(21)), kLabels3).settings)->sample_shape().str(), "[7]");
}

TEST_CASE("idx rows outside the data set are refused") {
  const Pair files(idx({3, 4, 5}, ramp(60)), kLabels3);
  const auto dataset = make_idx(files.settings);
  CHECK_EQ(error_of([&] { read_rows(*dataset, {0, 3}); }), "row 3 of a data set of 3 samples");
  CHECK_EQ(error_of([&] { read_rows(*dataset, {-1}); }), "row -1 of a data set of 3 samples");
}

TEST_CASE("idx header that promises more rows than the file holds") {
  const Pair files(idx({100, 2, 2}, ramp(240)), idx({100}, ramp(100)));
  CHECK_EQ(files.error(), files.settings.images + ": expected 400 bytes of data for shape [100, 2, 2], found 240");
  const Pair packed(gzip(idx({100, 2, 2}, ramp(240))), idx({100}, ramp(100)));
  CHECK_EQ(packed.error(), packed.settings.images + ": expected 400 bytes of data for shape [100, 2, 2], found 240");
}

TEST_CASE("idx file with more bytes than its header promises") {
  const Pair files(idx({3, 4, 5}, ramp(61)), kLabels3);
  CHECK_EQ(files.error(), files.settings.images + ": expected 60 bytes of data for shape [3, 4, 5], found 61");
  const Pair packed(gzip(idx({3, 4, 5}, ramp(61))), kLabels3);
  CHECK_EQ(packed.error(), packed.settings.images + ": expected 60 bytes of data for shape [3, 4, 5], found more");
}

TEST_CASE("idx header that promises terabytes is refused without allocating them") {
  const Pair plain(idx({1u << 30, 1u << 12, 1u << 10}, ramp(60)), kLabels3);
  CHECK(has(plain.error(), "expected 4503599627370496 bytes"));
  const Pair packed(gzip(idx({1u << 30, 1u << 12, 1u << 10}, ramp(60))), kLabels3);
  CHECK(has(packed.error(), "compressed bytes, which can hold no more than"));
  const Pair overflow(idx({~0u, ~0u, ~0u}, ramp(60)), kLabels3);
  CHECK(has(overflow.error(), "passes 2^63"));
}

TEST_CASE("idx wrong magic names the expected and the found one") {
  const Pair swapped(kLabels3, kLabels3);
  CHECK_EQ(swapped.error(), swapped.settings.images +
                                ": IDX magic: expected 0x00000802 to 0x00000804 (unsigned bytes), found 0x00000801: is "
                                "this the right file, images or labels as MNIST has them?");
  const Pair floats(idx({3, 4, 5}, ramp(240), 0x0d), kLabels3);
  CHECK(has(floats.error(), "found 0x00000d03"));
  const Pair text("hello world", kLabels3);
  CHECK(has(text.error(), "found 0x68656c6c"));
}

TEST_CASE("idx images and labels that differ in number") {
  const Pair files(idx({60, 2, 2}, ramp(240)), idx({59}, ramp(59)));
  CHECK_EQ(files.error(), files.settings.labels + ": expected 60 labels, one for each image of " +
                              files.settings.images + ", found 59");
}

TEST_CASE("idx label out of range names the row") {
  Pair files(idx({3, 4, 5}, ramp(60)), idx({3}, std::string("\1\12\2", 3)));
  files.settings.classes = 10;
  CHECK_EQ(files.error(), files.settings.labels + ": label of row 1: expected 0 to 9, found 10");
}

TEST_CASE("idx empty missing and headless files") {
  Pair files("", kLabels3);
  CHECK_EQ(files.error(), files.settings.images + ": the file is empty");
  const Pair headless(std::string("\0\0\10\3\0\0", 6), kLabels3);
  CHECK_EQ(headless.error(), headless.settings.images + ": expected 4 bytes of IDX dimensions, found 2");
  files.settings.images = "/nonexistent/images";
  CHECK_EQ(files.error(),
           "/nonexistent/images: no such file; relative paths start at the folder that holds configs/ or datasets/");
  files.settings.images = "/tmp";
  CHECK_EQ(files.error(), "/tmp: expected a regular file, found a folder");
  const Pair none(idx({0, 4, 5}, ""), kLabels3);
  CHECK_EQ(none.error(), none.settings.images + ": expected samples, found an IDX array of shape [0, 4, 5]");
}

TEST_CASE("idx gzip damage: truncated at any byte") {
  const std::string whole = gzip(idx({3, 4, 5}, ramp(60)));
  for (size_t length = 2; length < whole.size(); ++length) {
    const Pair files(whole.substr(0, length), kLabels3);
    CHECK_MESSAGE(has(files.error(), files.settings.images + ": truncated: expected the end of the gzip data"), length);
  }
}

TEST_CASE("idx gzip damage: any flipped byte of data or checksum is noticed") {
  const std::string whole = gzip(idx({3, 4, 5}, ramp(60)));
  for (size_t at = 10; at < whole.size(); ++at) {  // the 10 bytes before are time stamp and the like
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    const Pair files(damaged, kLabels3);
    CHECK_MESSAGE(has(files.error(), files.settings.images), at);
  }
}

TEST_CASE("idx gzip damage: checksum error and trailing garbage are named") {
  std::string damaged = gzip(idx({3, 4, 5}, ramp(60)));
  damaged[damaged.size() - 8] = static_cast<char>(damaged[damaged.size() - 8] ^ 1);
  CHECK(has(Pair(damaged, kLabels3).error(), "corrupt gzip data after 76 bytes: incorrect data check"));
  for (const char* garbage : {"x", "xy", "\x1f", "xxxxxxxxxxxxxxxxxxxxxxxx"}) {
    const Pair files(gzip(idx({3, 4, 5}, ramp(60))) + garbage, kLabels3);
    CHECK_EQ(files.error(),
             files.settings.images + ": expected the end of the file after the gzip data, found other bytes");
  }
}

TEST_CASE("idx keys that are missing are named") {
  DatasetSettings settings;
  settings.images = "somewhere";
  CHECK_EQ(error_of([&] { make_idx(settings); }), "kind idx: expected the keys images and labels, found only images");
}

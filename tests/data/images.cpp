// Reading images: pixels as they were written, and every kind of file that is refused.
#include "data/images.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "core/error.h"
#include "files.h"
#include "support/image_files.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<uint8_t> gradient(int64_t count) {
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < count; ++i) pixels.push_back(static_cast<uint8_t>(i * 5 % 256));
  return pixels;
}

std::string refusal(const std::string& path, const Shape& expected) {
  try {
    read_image(path, expected);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("images: a PNG gives the bytes it was made of in grey and RGB") {
  const TempDir dir;
  for (const int64_t channels : {1, 3}) {
    const std::vector<uint8_t> pixels = gradient(channels * 5 * 7);
    write_png(dir.path() + "/a.png", channels, 5, 7, pixels);
    CHECK(read_image(dir.path() + "/a.png", {channels, 5, 7}) == pixels);
  }
}

TEST_CASE("images: a JPEG gives its pixels within the rounding of its format") {
  const TempDir dir;
  for (const int64_t channels : {1, 3}) {
    std::vector<uint8_t> pixels;
    for (int64_t i = 0; i < 16 * 16 * channels; ++i) pixels.push_back(static_cast<uint8_t>(60 + i / channels / 4));
    write_jpeg(dir.path() + "/a.jpg", channels, 16, 16, pixels);
    const std::vector<uint8_t> found = read_image(dir.path() + "/a.jpg", {channels, 16, 16});
    REQUIRE(found.size() == pixels.size());
    int furthest = 0;
    for (size_t i = 0; i < pixels.size(); ++i) furthest = std::max(furthest, std::abs(found[i] - pixels[i]));
    CHECK(furthest <= 3);
  }
}

TEST_CASE("images: other sizes colours and depths are refused by name") {
  const TempDir dir;
  const std::string path = dir.path() + "/a.png";
  write_png(path, 1, 5, 7, gradient(35));
  CHECK(contains(refusal(path, {1, 7, 5}),
                 "a.png: expected a greyscale image of 5 x 7 pixels (width x height), found greyscale, 7 x 5"));
  CHECK(contains(refusal(path, {3, 5, 7}),
                 "expected a RGB image of 7 x 5 pixels (width x height), found greyscale, 7 x 5"));
  write_png(path, 2, 5, 7, gradient(70));
  CHECK(contains(refusal(path, {1, 5, 7}), "transparency"));
  write_png(path, 4, 5, 7, gradient(140));
  CHECK(contains(refusal(path, {3, 5, 7}), "transparency"));
  write_png_16_bits(path, 5, 7);
  CHECK(contains(refusal(path, {1, 5, 7}), "expected 8 bits a channel, found 16"));
  write_jpeg(dir.path() + "/a.jpg", 3, 8, 8, gradient(192));
  CHECK(contains(refusal(dir.path() + "/a.jpg", {1, 8, 8}), "found RGB, 8 x 8"));
  CHECK(contains(refusal(dir.path() + "/none.png", {1, 8, 8}), "none.png"));
}

TEST_CASE("images: a file cut anywhere is damaged and a changed one never more than an error") {
  const TempDir dir;
  const std::string png = dir.path() + "/a.png", jpeg = dir.path() + "/a.jpg";
  write_png(png, 3, 9, 9, gradient(243));
  write_jpeg(jpeg, 3, 16, 16, gradient(768));
  for (const auto& [path, shape] : {std::pair{png, Shape{3, 9, 9}}, {jpeg, Shape{3, 16, 16}}}) {
    const std::string whole = text_of(path);
    const std::vector<uint8_t> pixels = read_image(path, shape);
    for (size_t length = 0; length < whole.size(); ++length) {
      std::ofstream(path, std::ios::binary) << whole.substr(0, length);
      // What may be missing of a PNG are checksums and the empty last chunk, of a JPEG the end marker.
      if (length + 24 < whole.size()) CHECK_MESSAGE(refusal(path, shape) != "accepted", path << " " << length);
    }
    int refused = 0;
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x5a);
      std::ofstream(path, std::ios::binary) << changed;
      const bool accepted = refusal(path, shape) == "accepted";
      if (!accepted) ++refused;
      // A PNG's checksums tell; a JPEG has none.
      if (accepted && path == png) CHECK_MESSAGE(read_image(path, shape) == pixels, at);
    }
    CHECK(refused > 10);
  }
}

TEST_CASE("images: a folder is read in the order of the names and other files are left out") {
  const TempDir dir;
  write_png(dir.path() + "/b.PNG", 1, 2, 2, {0, 51, 102, 255});
  write_png(dir.path() + "/a.png", 1, 2, 2, {255, 255, 0, 0});
  std::ofstream(dir.path() + "/readme.txt") << "x";
  const std::vector<std::string> names = image_names(dir.path());
  CHECK(names == std::vector<std::string>{"a.png", "b.PNG"});
  DatasetSettings settings;
  settings.mean = 0.5, settings.std = 0.25;
  const ImageFolder folder(dir.path(), names, {1, 2, 2}, Normalization(settings));
  CHECK(folder.size() == 2);
  std::vector<float> x(8);
  std::vector<int64_t> labels(2);
  const std::vector<int64_t> rows{1, 0};
  folder.read(rows, {.x = x.data(), .labels = labels.data()});
  CHECK(x == std::vector<float>{-2, (51 / 255.0F - 0.5F) / 0.25F, (102 / 255.0F - 0.5F) / 0.25F, 2, 2, 2, -2, -2});
  CHECK_THROWS_AS(ImageFolder(dir.path(), names, {2, 2, 2}, Normalization(settings)), Error);
  CHECK_THROWS_AS(image_names(dir.path() + "/none"), Error);
}

#include "data/images.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "data/input_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{256} << 20;
constexpr std::array<uint8_t, 8> kPngStart{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::array<uint8_t, 3> kJpegStart{0xff, 0xd8, 0xff};

bool is_image_name(const fs::path& name) {
  std::string end = name.extension().string();
  std::ranges::transform(end, end.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

std::vector<uint8_t> file_bytes(const std::string& path) {
  InputFile file(path);
  std::vector<uint8_t> bytes;
  for (size_t have = 0;;) {
    if (have > kMostBytes) throw_error("{}: expected {} bytes at most, found more", path, kMostBytes);
    bytes.resize(std::max<size_t>(2 * have, 1 << 16));
    const size_t got = file.read(std::span(bytes).subspan(have));
    have += got;
    if (have == bytes.size()) continue;
    bytes.resize(have);
    return bytes;
  }
}

template <size_t n>
bool starts_with(std::span<const uint8_t> bytes, const std::array<uint8_t, n>& start) {
  return bytes.size() >= n && std::ranges::equal(bytes.first(n), start);
}

const char* colours(int64_t channels) { return channels == 1 ? "greyscale" : "RGB"; }

void check_image(const std::string& path, const Shape& expected, int64_t channels, int64_t height, int64_t width) {
  if (expected == Shape{channels, height, width}) return;
  throw_error("{}: expected a {} image of {} x {} pixels (width x height), found {}, {} x {}", path,
              colours(expected[0]), expected[2], expected[1], colours(channels), width, height);
}

// libpng's reader of whole images, freed whatever happens.
struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

std::vector<uint8_t> read_png(const std::string& path, std::span<const uint8_t> bytes, const Shape& expected) {
  PngImage png;
  if (png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()) == 0)
    throw_error("{}: damaged PNG: {}", path, png.image.message);
  if ((png.image.format & PNG_FORMAT_FLAG_LINEAR) != 0) throw_error("{}: expected 8 bits a channel, found 16", path);
  if ((png.image.format & PNG_FORMAT_FLAG_ALPHA) != 0)
    throw_error("{}: expected an image without transparency, found an alpha channel", path);
  const bool coloured = (png.image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  check_image(path, expected, coloured ? 3 : 1, png.image.height, png.image.width);
  png.image.format = coloured ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::vector<uint8_t> pixels(static_cast<size_t>(expected.numel()));
  // What the header made it warn of is harmless; of the pixels, a wrong checksum may be no more than a warning.
  png.image.warning_or_error = 0;
  if (png_image_finish_read(&png.image, nullptr, pixels.data(), 0, nullptr) == 0 || png.image.warning_or_error != 0)
    throw_error("{}: damaged PNG: {}", path, png.image.message);
  return pixels;
}

struct CloseDecoder {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};

std::vector<uint8_t> read_jpeg(const std::string& path, std::span<const uint8_t> bytes, const Shape& expected) {
  const std::unique_ptr<void, CloseDecoder> decoder(tjInitDecompress());
  if (decoder == nullptr) throw_error("{}: libjpeg-turbo cannot start: {}", path, tjGetErrorStr2(nullptr));
  int width = 0, height = 0, sampling = 0, space = 0;
  const auto size = static_cast<unsigned long>(bytes.size());
  if (tjDecompressHeader3(decoder.get(), bytes.data(), size, &width, &height, &sampling, &space) != 0)
    throw_error("{}: damaged JPEG: {}", path, tjGetErrorStr2(decoder.get()));
  if (space == TJCS_CMYK || space == TJCS_YCCK) throw_error("{}: expected greyscale or RGB, found CMYK", path);
  const bool coloured = space != TJCS_GRAY;
  check_image(path, expected, coloured ? 3 : 1, height, width);
  std::vector<uint8_t> pixels(static_cast<size_t>(expected.numel()));
  if (tjDecompress2(decoder.get(), bytes.data(), size, pixels.data(), width, 0, height, coloured ? TJPF_RGB : TJPF_GRAY,
                    TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0)
    throw_error("{}: damaged JPEG: {}", path, tjGetErrorStr2(decoder.get()));
  return pixels;
}

Dataset::Info folder_info(size_t images, const Shape& sample) {
  if (sample.rank() != 3 || (sample[0] != 1 && sample[0] != 3))
    throw_error("the model's samples are {}, no images: expected [1, height, width] or [3, height, width]",
                sample.str());
  return {.size = static_cast<int64_t>(images), .sample_shape = sample, .classes = 1};
}

}  // namespace

std::vector<std::string> image_names(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_image_name(entry.path())) names.push_back(entry.path().filename().string());
  }
  if (error) throw_error("{}: cannot be read as a folder: {}", folder, error.message());
  if (names.empty()) throw_error("{}: expected images, found no file that ends in .png, .jpg or .jpeg", folder);
  std::ranges::sort(names);
  return names;
}

std::vector<uint8_t> read_image(const std::string& path, const Shape& expected) {
  const std::vector<uint8_t> bytes = file_bytes(path);
  if (starts_with(bytes, kPngStart)) return read_png(path, bytes, expected);
  if (starts_with(bytes, kJpegStart)) return read_jpeg(path, bytes, expected);
  throw_error("{}: is neither PNG nor JPEG", path);
}

ImageFolder::ImageFolder(std::string folder, std::vector<std::string> names, const Shape& sample,
                         const Normalization& normalization)
    : Dataset(folder_info(names.size(), sample)), folder_(std::move(folder)), names_(std::move(names)) {
  for (int byte = 0; byte < 256; ++byte) table_.push_back(normalization(static_cast<float>(byte) / 255.0F));
}

// From the pixel's channels side by side to a plane for each.
void ImageFolder::gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const {
  const auto channels = static_cast<size_t>(sample_shape()[0]);
  const size_t plane = static_cast<size_t>(sample_shape().numel()) / channels;
  float* to = out.x;
  int64_t* label = out.labels;
  for (const int64_t row : rows) {
    const std::vector<uint8_t> pixels =
        read_image(folder_ + "/" + names_[static_cast<size_t>(row + offset)], sample_shape());
    for (size_t channel = 0; channel < channels; ++channel) {
      for (size_t i = 0; i < plane; ++i) *to++ = table_[pixels[i * channels + channel]];
    }
    *label++ = 0;
  }
}

}  // namespace lockstep

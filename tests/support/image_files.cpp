#include "support/image_files.h"

#include <png.h>
#include <turbojpeg.h>

#include <fstream>

#include "core/error.h"

namespace lockstep::test {
namespace {

void write(const std::filesystem::path& path, png_uint_32 format, int64_t height, int64_t width, const void* pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  if (png_image_write_to_file(&image, path.c_str(), 0, pixels, 0, nullptr) == 0)
    throw_error("{}: {}", path.string(), image.message);
}

}  // namespace

void write_png(const std::filesystem::path& path, int64_t channels, int64_t height, int64_t width,
               const std::vector<uint8_t>& pixels) {
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  write(path, kFormats[channels - 1], height, width, pixels.data());
}

void write_png_16_bits(const std::filesystem::path& path, int64_t height, int64_t width) {
  write(path, PNG_FORMAT_LINEAR_Y, height, width, std::vector<uint16_t>(static_cast<size_t>(height * width)).data());
}

void write_jpeg(const std::filesystem::path& path, int64_t channels, int64_t height, int64_t width,
                const std::vector<uint8_t>& pixels) {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const tjhandle encoder = tjInitCompress();
  const int failed = tjCompress2(encoder, pixels.data(), static_cast<int>(width), 0, static_cast<int>(height),
                                 channels == 1 ? TJPF_GRAY : TJPF_RGB, &bytes, &size,
                                 channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 100, TJFLAG_ACCURATEDCT);
  if (failed == 0)
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  tjFree(bytes);
  tjDestroy(encoder);
  if (failed != 0) throw_error("{}: no JPEG could be made", path.string());
}

std::vector<uint8_t> interleaved(std::span<const uint8_t> planes, int64_t channels) {
  const size_t count = static_cast<size_t>(channels), plane = planes.size() / count;
  std::vector<uint8_t> pixels(planes.size());
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < count; ++c) pixels[i * count + c] = planes[c * plane + i];
  }
  return pixels;
}

}  // namespace lockstep::test

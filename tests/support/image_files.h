// Writes small PNG and JPEG files for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::test {

// pixels: [height, width, channels]; 1: grey, 2: grey with alpha, 3: RGB, 4: RGB with alpha.
void write_png(const std::filesystem::path& path, int64_t channels, int64_t height, int64_t width,
               const std::vector<uint8_t>& pixels);
void write_png_16_bits(const std::filesystem::path& path, int64_t height, int64_t width);  // grey, all 0
void write_jpeg(const std::filesystem::path& path, int64_t channels, int64_t height, int64_t width,
                const std::vector<uint8_t>& pixels);  // without subsampling, quality 100

// From a plane for each channel to channels side by side.
std::vector<uint8_t> interleaved(std::span<const uint8_t> planes, int64_t channels);

}  // namespace lockstep::test

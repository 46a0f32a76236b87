// A folder of PNG and JPEG images as a data set of samples alone: [1, H, W] for greyscale, [3, H, W] for RGB, a byte as
// byte / 255, normalised. Images are decoded when they are read, by libpng and libjpeg-turbo; files are data from
// anywhere: sizes are bounded, and checked against the sample's before memory is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/memory_dataset.h"

namespace lockstep {

// The names that end in .png, .jpg or .jpeg (in either case), in the order of their bytes. Error: no folder, none such.
std::vector<std::string> image_names(const std::string& folder);

// Pixels [height, width, channels]. expected: the sample, [channels, height, width] with 1 or 3 channels. Error, naming
// the file: damaged or cut short, another size, colours where grey is expected or the reverse, transparency, 16 bits a
// channel, neither PNG nor JPEG, over 256 MiB.
std::vector<uint8_t> read_image(const std::string& path, const Shape& expected);

class ImageFolder final : public Dataset {
 public:
  // names: of files in the folder, one for each row. sample: as read_image. Error: no image's shape.
  ImageFolder(std::string folder, std::vector<std::string> names, const Shape& sample,
              const Normalization& normalization);

 protected:
  void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const override;

 private:
  std::string folder_;
  std::vector<std::string> names_;
  std::vector<float> table_;  // byte -> normalised float
};

}  // namespace lockstep

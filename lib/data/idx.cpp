#include "data/idx.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "data/input_file.h"
#include "data/memory_dataset.h"

namespace lockstep {

namespace {

constexpr uint8_t kUnsignedByte = 0x08;

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

}  // namespace

IdxArray read_idx(const std::string& path, int min_rank, int max_rank) {
  InputFile file(path);
  std::array<uint8_t, 4> magic{};
  file.read_exactly(magic, "IDX magic");
  const int rank = magic[3];
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || rank < min_rank || rank > max_rank) {
    throw_error(
        "{}: IDX magic: expected 0x{:08x}{} (unsigned bytes), found 0x{:08x}: is this the right file, images or labels "
        "as MNIST has them?",
        path, 0x800 + min_rank, max_rank > min_rank ? fmt::format(" to 0x{:08x}", 0x800 + max_rank) : "",
        big_endian(magic.data()));
  }
  std::array<int64_t, Shape::kMaxRank> dims{};
  uint64_t bytes = 1;
  for (int axis = 0; axis < rank; ++axis) {
    std::array<uint8_t, 4> dim{};
    file.read_exactly(dim, "IDX dimensions");
    dims[static_cast<size_t>(axis)] = big_endian(dim.data());
    bytes = checked_product(bytes, big_endian(dim.data()), path);
  }
  IdxArray out;
  out.shape = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank)));
  if (bytes == 0) throw_error("{}: expected samples, found an IDX array of shape {}", path, out.shape.str());
  out.data = file.read_rest(bytes, fmt::format("data for shape {}", out.shape.str()));
  return out;
}

namespace {

// The small file first: its mistakes show at once.
Targets read_labels(const DatasetSettings& settings) {
  IdxArray labels = read_idx(settings.labels, 1, 1);
  return Targets::of_labels({labels.data.begin(), labels.data.end()}, settings.classes, settings.labels)
      .wanted(settings.targets, settings.labels);
}

}  // namespace

std::unique_ptr<Dataset> make_idx(const DatasetSettings& settings) {
  const bool alone = settings.targets == WantedTargets::none;
  if (settings.images.empty() || (settings.labels.empty() && !alone)) {
    throw_error("kind idx: expected the keys images and labels, found {}",
                !settings.images.empty() ? "only images" : (!settings.labels.empty() ? "only labels" : "neither"));
  }
  const Normalization normalization(settings);
  std::optional<Targets> targets;
  if (!alone) targets = read_labels(settings);
  IdxArray images = read_idx(settings.images, 2, 4);
  if (alone) targets = Targets::none(images.shape[0]);
  if (images.shape[0] != targets->rows()) {
    throw_error("{}: expected {} labels, one for each image of {}, found {}", settings.labels, images.shape[0],
                settings.images, targets->rows());
  }
  Shape sample = images.shape.without_front();
  if (images.shape.rank() == 3) sample = sample.with_front(1);  // grey images have one channel
  return std::make_unique<ByteDataset>(std::move(images.data), sample, std::move(*targets), normalization,
                                       settings.images);
}

}  // namespace lockstep

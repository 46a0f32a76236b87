#include "train/kept_data.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "comm/gather.h"
#include "comm/run_agreed.h"
#include "core/error.h"
#include "train/memory_estimate.h"

namespace lockstep {
namespace {

struct Numbers {
  uint64_t free, bytes;
};

uint64_t limit_of(const DeviceConfig& config) {
  return config.data_mb ? static_cast<uint64_t>(*config.data_mb) << 20 : std::numeric_limits<uint64_t>::max();
}

// What is in the way on one rank; empty: nothing. room: of its share of what is free.
std::string obstacle(const DeviceConfig& config, std::span<const KeepFacts> ranks, size_t rank, uint64_t part) {
  const KeepFacts& mine = ranks[rank];
  if (mine.bytes == 0) return "it makes its samples when they are asked for";
  if (mine.bytes > limit_of(config))
    return fmt::format("it takes {} as stored, more than device.data_mb: {}", bytes_text(mine.bytes), *config.data_mb);
  const auto sharers = static_cast<uint64_t>(std::ranges::count(ranks, mine.device, &KeepFacts::device));
  if (mine.bytes <= mine.free / part / sharers) return "";
  std::string text =
      fmt::format("it takes {} as stored, more than {}the {} that are free on the GPU", bytes_text(mine.bytes),
                  part > 1 ? fmt::format("1/{} of ", part) : "", bytes_text(mine.free));
  if (ranks.size() > 1) text += fmt::format(" of rank {}", rank);
  if (sharers > 1) text += fmt::format(", which {} ranks share", sharers);
  return text;
}

std::string first_obstacle(const DeviceConfig& config, std::span<const KeepFacts> ranks, uint64_t part) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (std::string text = obstacle(config, ranks, rank, part); !text.empty()) return text;
  return "";
}

}  // namespace

std::vector<KeepFacts> gather_keep_facts(const Dataset& train, Backend& backend, Communicator& communicator) {
  if (backend.gpu() == nullptr) return {};
  DeviceMemory memory;
  run_agreed(communicator, [&] { memory = backend.device_memory().value(); });
  const std::optional<StoredRows> stored = train.stored();
  const Numbers mine{.free = memory.free, .bytes = stored ? stored->all_bytes() : 0};
  const std::vector<std::string> devices = gather_texts(memory.device, communicator);
  const std::vector<Numbers> numbers = gather_values(std::span(&mine, 1), communicator);
  std::vector<KeepFacts> ranks;
  for (size_t rank = 0; rank < devices.size(); ++rank)
    ranks.push_back({.device = devices[rank], .free = numbers[rank].free, .bytes = numbers[rank].bytes});
  return ranks;
}

KeepDecision decide_keep(const DeviceConfig& config, std::span<const KeepFacts> ranks) {
  const bool must = config.data == "on";
  if (ranks.empty() && must)
    throw_error(
        "device.data on: the run is on a CPU, which reads the training set where it is: write device.data: auto, or "
        "device.kind: cuda");
  if (ranks.empty()) return {};
  if (config.data == "off") return {false, "training set: on the host, batches are copied (device.data: off)"};
  const std::string text = first_obstacle(config, ranks, must ? 1 : kKeptShare);
  if (!text.empty() && must)
    throw_error("device.data on: the training set can't be kept on the GPU: {}: write device.data: auto or off", text);
  if (!text.empty()) return {false, "training set: on the host, batches are copied: " + text + " (device.data: auto)"};
  const KeepFacts& most = *std::ranges::max_element(ranks, {}, &KeepFacts::bytes);
  return {true, fmt::format("training set: kept on {}, {} as stored, of {} that are free (device.data: {})",
                            ranks.size() > 1 ? "every rank's GPU" : "the GPU", bytes_text(most.bytes),
                            bytes_text(std::ranges::min(ranks, {}, &KeepFacts::free).free), config.data)};
}

std::unique_ptr<Feed> make_keeping_feed(const Dataset& train, const ImageFormat& image, int64_t batch_size,
                                        Backend& backend) {
  const StoredRows rows = train.stored().value();
  try {
    return backend.make_keeping_feed(rows, image, batch_size);
  } catch (const Error& error) {
    throw_error("the training set, {} as stored, can't be kept on the GPU: {}; or write device.data: off",
                bytes_text(rows.all_bytes()), error.what());
  }
}

}  // namespace lockstep

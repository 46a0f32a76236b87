// Which GPU each rank of a node takes, as pure functions of what the ranks see: launchers show a task all GPUs, one, a
// subset or a permutation (CUDA_VISIBLE_DEVICES), so an index means nothing without the list it points into.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/gpu.h"

namespace lockstep {

struct DeviceChoice {
  int index = -1;       // into what this rank sees; -1: none is left for it
  bool shared = false;  // with another rank of the node
};

// visible[r]: the UUIDs that local rank r sees, in its order. Every rank gets a GPU of its own where that is possible
// at all, the n-th rank the n-th GPU where all see the same list. Where it is not, the ranks without one have index -1,
// or with oversubscribe share the least loaded GPU that they see.
std::vector<DeviceChoice> choose_devices(std::span<const std::vector<std::string>> visible, bool oversubscribe);

// The index of `local_rank`, whose node's ranks see `visible`. Throws Error, with the cure, where it would share a GPU
// or has none.
int pick_device(int local_rank, std::span<const std::vector<std::string>> visible, bool oversubscribe);

struct VisibleList {
  std::vector<int> indices;  // into the GPUs of the node
  std::string problem;       // "CUDA_VISIBLE_DEVICES is empty: ..."; empty: none
};

// What CUDA makes of CUDA_VISIBLE_DEVICES on a node with the GPUs `uuids`: indices or (beginnings of) UUIDs; the list
// ends at the first entry that names no GPU; a GPU named twice makes all of it void. text: null where it is not set.
VisibleList visible_devices(const char* text, std::span<const std::string> uuids);

struct PlacedGpu {
  int rank = 0;
  std::string host;
  Gpu gpu;
};
// Empty, or which ranks hold the same GPU. By UUID, so neither host names nor containers matter; `gpus` of all ranks.
std::string shared_gpu_text(std::span<const PlacedGpu> gpus);

}  // namespace lockstep

// What this process can see of GPUs, in plain structures: no CUDA header is needed to ask. Implemented by
// cuda/gpu_facts.cpp, by no_cuda.cpp in builds without CUDA, and by the simulated GPU of the tests.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

struct Gpu {
  std::string name;    // "NVIDIA H100 80GB HBM3"
  std::string bus_id;  // "0000:3b:00.0": the slot of this node
  std::string uuid;    // "GPU-5f3c...": this GPU and no other in the world; parts of a divided GPU have their own
  int major = 0, minor = 0;
  size_t memory_bytes = 0;
};

struct GpuFacts {
  bool built = false;        // this build has a CUDA backend
  std::string why_none;      // why there is no GPU to be had, in the driver's words; empty where there is one
  int driver = 0;            // newest CUDA version that the driver can serve, 13000 for 13.0; 0: no driver
  int runtime = 0;           // CUDA version of this build
  std::vector<Gpu> visible;  // in the order of CUDA's indices, after CUDA_VISIBLE_DEVICES
};

// Asks the driver; makes no context on any GPU. Throws nothing: a machine without a driver has no GPU.
GpuFacts gpu_facts();
// Of what gpu_facts() says now: the GPU with an index that was there before. Throws Error where it no longer is.
const Gpu& gpu_in_use(const GpuFacts& facts, int index);

// How a GPU computes, as the section `device` of a config says it.
struct GpuOptions {
  int index = -1;             // this rank's GPU, among those that CUDA shows it (comm/gpu_placement.h)
  bool deterministic = true;  // the same bits on every run: other algorithms of cuDNN are not considered
  // Convolutions' algorithms by timing all of them on this GPU; else in cuDNN's order of expectation.
  bool measure_convolutions = false;
  size_t convolution_workspace = size_t{256} << 20;  // bytes that one pass of a convolution may want
  bool tf32 = false;                                 // fp32 products may round their factors to 11 bits
};

struct LibraryVersion {
  std::string name, version;  // version: "9.19.0", or "not found" with the name that was looked for
};
// The GPU libraries that this build would load, as they are found on this machine. Empty without CUDA.
std::vector<LibraryVersion> gpu_libraries();

}  // namespace lockstep

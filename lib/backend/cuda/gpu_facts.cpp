// What the CUDA runtime says of driver and devices. None of these calls makes a context.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/gpu.h"

namespace lockstep {
namespace {

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

// "9.19.0" from what a library's own function says, which packs it by `major` and `minor`.
std::string unpack(size_t version, size_t major, size_t minor) {
  return fmt::format("{}.{}.{}", version / major, version % major / minor, version % minor);
}

// Loaded only to be asked: these libraries take longer to load than a small run to train.
LibraryVersion ask(const char* name, const char* file, const char* function, size_t major, size_t minor) {
  void* library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return {name, fmt::format("not found ({})", file)};
  auto* version = reinterpret_cast<size_t (*)()>(dlsym(library, function));
  if (version == nullptr) return {name, fmt::format("{} has no {}", file, function)};
  return {name, unpack(version(), major, minor)};
}

}  // namespace

GpuFacts gpu_facts() {
  GpuFacts facts;
  facts.built = true;
  facts.runtime = CUDART_VERSION;
  cudaDriverGetVersion(&facts.driver);
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (found != cudaSuccess) {
    facts.why_none = cudaGetErrorString(found);
    if (found != cudaErrorNoDevice) facts.why_none = "cudaGetDeviceCount failed: " + facts.why_none;
    if (facts.driver == 0) facts.why_none = "this machine has no NVIDIA driver";
    return facts;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    char bus_id[32] = "";
    if (const cudaError_t asked = cudaGetDeviceProperties(&properties, i); asked != cudaSuccess) {
      facts.why_none = fmt::format("GPU {}: cudaGetDeviceProperties failed: {}", i, cudaGetErrorString(asked));
      facts.visible.clear();
      return facts;
    }
    cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), i);
    facts.visible.push_back({.name = properties.name,
                             .bus_id = bus_id,
                             .uuid = uuid_text(properties.uuid),
                             .major = properties.major,
                             .minor = properties.minor,
                             .memory_bytes = properties.totalGlobalMem});
  }
  if (facts.visible.empty()) facts.why_none = "the driver lists none";
  return facts;
}

std::vector<LibraryVersion> gpu_libraries() {
  const std::string major = fmt::format("{}", CUDART_VERSION / 1000);
  return {ask("cuBLAS", ("libcublasLt.so." + major).c_str(), "cublasLtGetVersion", 10000, 100),
          ask("cuDNN", "libcudnn.so.9", "cudnnGetVersion", 10000, 100)};
}

}  // namespace lockstep

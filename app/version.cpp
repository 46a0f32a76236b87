#include <fmt/format.h>

#include "app/commands.h"
#include "comm/mpi_facts.h"
#include "core/build_info.h"
#include "core/cpu_features.h"
#include "train/doctor/doctor.h"

namespace lockstep::app {

std::string version_text() {
  std::string text = build_info() + "\n" + mpi_library();
  for (const LibraryVersion& library : library_versions())
    text += fmt::format(", {} {}", library.name, library.version);
  const GpuFacts gpu = gpu_facts();
  return text + fmt::format("\nCPU kernels: {}; GPUs: {}", name(detect_isa()),
                            gpu.built ? fmt::format("{} to be seen", gpu.visible.size()) : "none in this build");
}

}  // namespace lockstep::app

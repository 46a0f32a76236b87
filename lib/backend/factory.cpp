#include "backend/factory.h"

#include "backend/cpu/cpu_plans.h"
#include "core/error.h"

namespace lockstep {

std::unique_ptr<Backend> make_backend(std::string_view kind, const CpuOptions& cpu, const GpuOptions& gpu) {
  if (kind == "auto" || kind == "cpu") return make_cpu_backend(cpu);
  if (kind != "cuda") throw_error("device.kind: expected auto, cpu or cuda, found '{}'", kind);
  return make_cuda_backend(gpu);
}

std::unique_ptr<LossPlan> make_host_loss(const LossSpec& spec, int64_t batch, int64_t classes) {
  return make_cpu_loss(spec, batch, classes);
}

}  // namespace lockstep

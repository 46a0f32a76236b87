#include "backend/gpu.h"

#include "core/error.h"

namespace lockstep {

const Gpu& gpu_in_use(const GpuFacts& facts, int index) {
  if (index < 0 || static_cast<size_t>(index) >= facts.visible.size())
    throw_error("GPU {}, which this rank computes on, is gone: {}", index, facts.why_none);
  return facts.visible[static_cast<size_t>(index)];
}

}  // namespace lockstep

// no_cuda.cpp and no_nccl.cpp: what is missing is said, and nothing else goes wrong.
#include <doctest/doctest.h>

#include "backend/factory.h"
#include "backend/gpu.h"
#include "comm/nccl_facts.h"
#include "core/error.h"

using namespace lockstep;

TEST_CASE("a build without CUDA sees no GPU and says why") {
  const GpuFacts facts = gpu_facts();
  CHECK_FALSE(facts.built);
  CHECK(facts.visible.empty());
  CHECK(facts.why_none == "this build has no CUDA backend");
  CHECK(gpu_libraries().empty());
  CHECK(nccl_version().empty());
}

TEST_CASE("a build without CUDA still makes the CPU's backend") {
  CHECK(make_backend("auto", {})->name() == "cpu");
  CHECK_THROWS_WITH_AS(make_backend("cuda", {}, {.index = 0}),
                       "device.kind cuda: this build has no CUDA backend; write device: cpu", Error);
  CHECK_THROWS_AS(make_backend("tpu", {}), Error);
}

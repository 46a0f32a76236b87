// Tests on a GPU: every operation beside the CPU's, the tests of layers and networks that the CPU passes, and trainings
// beside the CPU's. Without a GPU they say why they are skipped (exit code 77). The same sources run on a simulated
// GPU.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "backend/gpu.h"

int main(int argc, char** argv) {
  // One GPU, however many there are: two ranks then share it.
  setenv("CUDA_VISIBLE_DEVICES", "0", 0);
  const lockstep::GpuFacts facts = lockstep::gpu_facts();
  if (facts.visible.empty()) {
    std::printf("SKIPPED: no GPU: %s\n", facts.why_none.c_str());
    return 77;
  }
  setenv("LOCKSTEP_TEST_DEVICE", "cuda", 1);
  doctest::Context context(argc, argv);
  return context.run();
}

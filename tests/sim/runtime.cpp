// The simulated GPU itself: it must catch what a test that uses it relies on it to catch.
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "backend/cuda/context.h"
#include "backend/gpu.h"
#include "core/error.h"
#include "sim/device_arrays.h"
#include "sim/runtime/control.h"
#include "sim/runtime/kernel.h"

using namespace lockstep;
using test::download;
using test::Upload;

namespace {

// Ends the way that `work` does in a process of its own: true if it came to its end.
bool survives(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);  // not the test framework's handler
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void visible(const char* text) {
  text == nullptr ? unsetenv("CUDA_VISIBLE_DEVICES") : setenv("CUDA_VISIBLE_DEVICES", text, 1);
}

}  // namespace

TEST_CASE("device memory comes and goes through copies only") {
  sim::reset({});
  cuda::Context context(0);
  const Buffer memory = context.allocate(1000 * sizeof(float));
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  CHECK(download(context, context.compute(), memory.as<float>().data(), 1000) == std::vector<float>(1000, 0.0f));
  const Upload upload(context, context.compute(), values, memory.as<float>().data());
  CHECK(download(context, context.compute(), memory.as<float>().data(), 1000) == values);
  volatile float* touched = memory.as<float>().data();
  CHECK_FALSE(survives([&] { touched[3] = 1; }));
  CHECK_FALSE(survives([&] { static_cast<void>(touched[3]); }));
  CHECK(survives([] {}));
}

TEST_CASE("memory that was not written is no number") {
  sim::reset({});
  cuda::Context context(0);
  void* raw = nullptr;
  REQUIRE(cudaMalloc(&raw, 64) == cudaSuccess);
  CHECK(std::isnan(download(context, context.compute(), static_cast<float*>(raw), 16)[5]));
  CHECK(cudaFree(raw) == cudaSuccess);
  CHECK(cudaFree(raw) == cudaErrorInvalidValue);
}

TEST_CASE("copies from freed or too little or pageable memory are errors") {
  sim::reset({});
  cuda::Context context(0);
  const Buffer pinned = context.pinned(256);
  const float* gone = nullptr;
  {
    const Buffer memory = context.allocate(128);
    gone = memory.as<float>().data();
    CHECK_THROWS_WITH_AS(context.to_host(context.compute(), pinned.data(), gone, 129),
                         "cudaMemcpyAsync failed: invalid argument", Error);
    float pageable[4] = {};
    CHECK_THROWS_AS(context.to_host(context.compute(), pageable, gone, 16), Error);
    CHECK(sim::last_misuse() == "cudaMemcpyAsync: the host memory is not pinned");
  }
  CHECK_THROWS_AS(context.to_host(context.compute(), pinned.data(), gone, 16), Error);
}

TEST_CASE("a stream keeps its order under every seed") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    sim::reset({.seed = seed});
    cuda::Context context(0);
    const Buffer memory = context.allocate(4 * sizeof(float));
    const std::vector<float> first(4, 1), second(4, 2);
    const Upload a(context, context.compute(), first, memory.as<float>().data());
    const Upload b(context, context.compute(), second, memory.as<float>().data());
    CHECK(download(context, context.compute(), memory.as<float>().data(), 4) == second);
  }
}

// One stream writes, the other reads: right under all seeds with the event, wrong under some without.
static int wrong_reads(bool with_event) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    sim::reset({.seed = seed});
    cuda::Context context(0);
    const cuda::Event written;
    const Buffer memory = context.allocate(4 * sizeof(float));
    const std::vector<float> values(4, 7);
    const Upload upload(context, context.compute(), values, memory.as<float>().data());
    context.compute().record(written);
    if (with_event) context.copies().wait(written);
    wrong += download(context, context.copies(), memory.as<float>().data(), 4) != values;
    context.synchronize(context.compute());
  }
  return wrong;
}

TEST_CASE("a missing event wait is caught") {
  CHECK(wrong_reads(true) == 0);
  CHECK(wrong_reads(false) > 0);
}

TEST_CASE("host memory that is reused before its copy ends is caught") {
  const auto wrong_copies = [](bool wait) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      sim::reset({.seed = seed});
      cuda::Context context(0);
      const Buffer memory = context.allocate(8), host = context.pinned(8);
      host.as<float>()[0] = 1;
      context.to_device(context.copies(), memory.data(), host.data(), 8);
      if (wait) context.synchronize(context.copies());
      host.as<float>()[0] = 2;
      wrong += download(context, context.copies(), memory.as<float>().data(), 1)[0] != 1;
    }
    return wrong;
  };
  CHECK(wrong_copies(true) == 0);
  CHECK(wrong_copies(false) > 0);
}

TEST_CASE("a thread that has set no device is refused") {
  sim::reset({});
  cuda::Context context(0);
  std::thread([&] {
    CHECK_THROWS_WITH(context.allocate(8), "GPU 0: cudaMalloc of 8 bytes failed: device not initialized");
  }).join();
  CHECK(sim::last_misuse() == "cudaMalloc: called in a thread before cudaSetDevice");
  std::thread([&] {
    context.enter();
    CHECK_NOTHROW(context.allocate(8));
  }).join();
}

TEST_CASE("a call fails when a test says so") {
  sim::reset({});
  cuda::Context context(0);
  sim::fail_call("cudaMalloc", 1);
  CHECK_NOTHROW(context.allocate(8));
  CHECK_THROWS_WITH(
      context.allocate(8),
      "GPU 0: cudaMalloc of 8 bytes failed: out of memory: nvidia-smi shows which processes hold the GPU's "
      "memory: end others, or lower train.batch_size (train.accumulate keeps the global batch)");
  CHECK_NOTHROW(context.allocate(8));
  CHECK(sim::calls()["cudaMalloc"] == 3);
}

TEST_CASE("a wait for the GPU ends when its watch says so") {
  sim::reset({});
  cuda::Context context(0);
  sim::launch_stuck(context.compute().get());
  context.set_watch([](double seconds) {
    if (seconds > 0.05) throw Error("waited long enough");
  });
  CHECK_THROWS_WITH(context.synchronize(context.compute()), "waited long enough");
  CHECK_NOTHROW(context.synchronize(context.copies()));
  sim::reset({});
}

TEST_CASE("facts about GPUs follow CUDA_VISIBLE_DEVICES") {
  sim::reset({.gpus = 4});
  visible("2,0");
  const GpuFacts two = gpu_facts();
  visible("");
  const GpuFacts hidden = gpu_facts();
  visible(nullptr);
  const GpuFacts all = gpu_facts();
  sim::reset({.gpus = 0});
  const GpuFacts none = gpu_facts();
  REQUIRE(two.visible.size() == 2);
  CHECK(two.visible[0].bus_id == "0000:03:00.0");
  CHECK(two.visible[1].bus_id == "0000:01:00.0");
  CHECK(two.why_none == "");
  CHECK(hidden.visible.empty());
  CHECK(hidden.why_none == "no CUDA-capable device is detected");
  REQUIRE(all.visible.size() == 4);
  CHECK(all.visible[2].uuid == two.visible[0].uuid);
  CHECK(none.why_none == "this machine has no NVIDIA driver");
  CHECK(none.built);
}

// Recordings on the simulated GPU: what is captured runs at every start, numbers are those of that start, and what a
// capture does not allow is refused.
#include <doctest/doctest.h>

#include "backend/cuda/cuda_recorder.h"
#include "backend/cuda/cuda_stopwatch.h"
#include "backend/cuda/optimizer_ops.h"
#include "backend/cuda/pointwise.h"
#include "core/error.h"
#include "sim/gpu_arrays.h"

using namespace lockstep;
using test::GpuArrays;

namespace {

const std::vector<float> kX{1, 2, 3, 4, 5};

std::unique_ptr<Recording> recorded(CudaRecorder& recorder, const std::function<void()>& work) {
  recorder.begin();
  work();
  return recorder.end();
}

}  // namespace

TEST_CASE("what is recorded is done at every start and not before") {
  GpuArrays gpu;
  CudaRecorder recorder(gpu.context());
  const CudaOptimizerOps ops(gpu.context());
  float* x = gpu.put(kX);
  const auto recording = recorded(recorder, [&] { ops.add(kX.size(), x, x); });
  CHECK(gpu.get(x, kX.size()) == kX);
  recorder.start(*recording, 0);
  CHECK(gpu.get(x, kX.size()) == std::vector<float>{2, 4, 6, 8, 10});
  recorder.start(*recording, 0);
  recorder.start(*recording, 0);
  CHECK(gpu.get(x, kX.size()) == std::vector<float>{8, 16, 24, 32, 40});
  CHECK(sim::last_misuse() == "");
}

TEST_CASE("an optimizer's numbers and dropout's key are those of the start") {
  GpuArrays gpu;
  CudaRecorder recorder(gpu.context());
  const CudaOptimizerOps ops(gpu.context());
  constexpr size_t n = 5;
  const auto dropout = make_cuda_dropout(gpu.context(), {.count = n, .p = 0.5});
  const auto step = [&](int t, uint64_t key, float* p, float* m, float* v, float* y, void* saved) {
    const float* gradient = p;
    ops.adam({.lr = 0.1 / t, .t = t}, n, p, gradient, m, v, nullptr);
    dropout->forward(p, y, {key, 3}, saved);
  };
  struct Arrays {
    float *p, *m, *v, *y;
    void* saved;
  };
  const auto arrays = [&] {
    const std::vector<float> zeros(n);
    return Arrays{gpu.put(kX), gpu.put(zeros), gpu.put(zeros), gpu.floats(n), gpu.make(n)};
  };
  const Arrays a = arrays(), b = arrays();
  const auto run = [&](const Arrays& in, int t) {
    step(t, 40 + static_cast<uint64_t>(t), in.p, in.m, in.v, in.y, in.saved);
  };
  const auto recording = recorded(recorder, [&] { run(b, 1); });
  for (int t = 1; t <= 6; ++t) {
    run(a, t);
    recorder.begin_numbers();
    ops.adam({.lr = 0.1 / t, .t = t}, n, b.p, b.p, b.m, b.v, nullptr);
    recorder.end_numbers();
    recorder.start(*recording, 40 + static_cast<uint64_t>(t));
    CHECK(gpu.get(b.p, n) == gpu.get(a.p, n));
    CHECK(gpu.get(b.y, n) == gpu.get(a.y, n));
  }
  CHECK(sim::last_misuse() == "");
}

TEST_CASE("streams that events join are part of a recording and run when they must under every order") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    GpuArrays gpu(seed);
    cuda::Context& context = gpu.context();
    CudaRecorder recorder(context);
    const CudaOptimizerOps ops(context);
    const cuda::Stream other;
    cuda::Event there, back;
    const size_t bytes = kX.size() * sizeof(float);
    float *x = gpu.put(kX), *y = gpu.floats(kX.size());
    const auto recording = recorded(recorder, [&] {
      ops.add(kX.size(), x, x);
      context.compute().record(there);
      other.wait(there);
      cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, other.get());
      other.record(back);
      context.compute().wait(back);
      ops.scale(kX.size(), x, 0.25F);
    });
    for (int i = 0; i < 3; ++i) recorder.start(*recording, 0);
    CHECK(gpu.get(y, kX.size()) == std::vector<float>{0.5F, 1, 1.5F, 2, 2.5F});
    CHECK(sim::last_misuse() == "");
  }
}

TEST_CASE("what waits for the device or was not joined can not be recorded") {
  GpuArrays gpu;
  cuda::Context& context = gpu.context();
  CudaRecorder recorder(context);
  const CudaOptimizerOps ops(context);
  float* x = gpu.put(kX);
  const auto refused = [&](const std::function<void()>& work) -> std::string {
    recorder.begin();
    try {
      work();
      recorder.end();
    } catch (const std::exception& error) {
      recorder.drop();
      return error.what();
    }
    return "";
  };
  CHECK(refused([&] { ops.sum_of_squares(kX.size(), x); }) ==
        "cudaEventQuery failed: operation not permitted when stream is capturing");
  CHECK(refused([&] { context.allocate(8); }) ==
        "GPU 0: cudaMalloc of 8 bytes failed: operation not permitted when stream is capturing");
  const cuda::Stream other;
  cuda::Event before, within;
  context.compute().record(before);
  CHECK(refused([&] { context.compute().wait(before); }) ==
        "cudaStreamWaitEvent failed: dependency created on uncaptured work in another stream");
  CHECK(refused([&] {
          context.compute().record(within);
          other.wait(within);
          cudaMemsetAsync(x, 0, 4, other.get());
        }) == "cudaStreamEndCapture failed: capturing stream has unjoined work");
  ops.add(kX.size(), x, x);  // a dropped recording leaves nothing behind
  CHECK(gpu.get(x, 2) == std::vector<float>{2, 4});
}

TEST_CASE("moments of a recording are those of its last start") {
  GpuArrays gpu;
  CudaRecorder recorder(gpu.context());
  const CudaOptimizerOps ops(gpu.context());
  CudaStopwatch watch(gpu.context());
  float* x = gpu.put(kX);
  watch.mark(0);
  const auto recording = recorded(recorder, [&] {
    ops.add(kX.size(), x, x);
    watch.mark(1);
    ops.add(kX.size(), x, x);
    watch.mark(2);
  });
  CHECK_THROWS_WITH(watch.seconds(0, 1), "cudaEventElapsedTime failed: invalid argument");  // nothing has started
  double last = 0;
  for (int i = 0; i < 2; ++i) {
    recorder.start(*recording, 0);
    gpu.context().synchronize(gpu.context().compute());
    CHECK(watch.seconds(0, 1) > last);
    CHECK(watch.seconds(1, 2) > 0);
    last = watch.seconds(0, 1);
  }
}

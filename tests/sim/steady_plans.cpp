// A step of the GPU's plans allocates nothing, makes no descriptors, and never has the host wait.
#include <doctest/doctest.h>

#include <functional>

#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/dnn.h"
#include "sim/gpu_arrays.h"

using namespace lockstep;
using test::GpuArrays;

namespace {

// Calls other than kernels, convolutions and copies within the device that a second step makes.
std::string calls_of(const std::function<void()>& step) {
  step();
  const std::map<std::string, int> before = sim::calls();
  step();
  std::string others;
  for (const auto& [function, count] : sim::calls()) {
    if (function == "cudaLaunchKernel" || function == "cudaMemcpyAsync" || function.starts_with("cudnnConvolution"))
      continue;
    const auto earlier = before.find(function);
    if (earlier == before.end() || earlier->second != count) others += function + " ";
  }
  return others;
}

struct Arrays {
  GpuArrays gpu;
  float *x, *w, *b, *y, *dy, *dx, *dw, *db;
  explicit Arrays(size_t n)
      : x(gpu.put(std::vector<float>(n, 1))),
        w(gpu.put(std::vector<float>(n, 1))),
        b(gpu.put(std::vector<float>(n, 1))),
        y(gpu.floats(n)),
        dy(gpu.put(std::vector<float>(n, 1))),
        dx(gpu.floats(n)),
        dw(gpu.floats(n)),
        db(gpu.floats(n)) {}
};

}  // namespace

TEST_CASE("a step of a convolution on the GPU allocates nothing and waits for nothing") {
  for (const DType type : {DType::f32, DType::bf16}) {
    Arrays a(2048);
    cuda::Dnn dnn(a.gpu.context());
    const auto plan = cuda::make_conv2d(a.gpu.context(), dnn,
                                        {.input = {.shape = Shape{2, 4, 8, 8}, .dtype = type},
                                         .out_channels = 6,
                                         .kernel = {3, 3},
                                         .activation = Activation::relu});
    void* workspace = a.gpu.make(plan->workspace_bytes());
    CHECK_EQ(calls_of([&] {
               plan->take_weights(a.w, workspace);
               plan->forward(a.x, a.w, a.b, a.y, workspace);
               plan->backward_data(a.dy, a.w, a.dx, workspace);
               plan->backward_weights(a.x, a.dy, a.dw, a.db, true, workspace);
             }),
             "");
    a.gpu.context().synchronize(a.gpu.context().compute());
  }
}

TEST_CASE("a step of pooling on the GPU allocates nothing and waits for nothing") {
  Arrays a(2048);
  const auto plan = cuda::make_pool2d(a.gpu.context(), {.input = {.shape = Shape{2, 4, 8, 8}}});
  void* saved = a.gpu.make(plan->saved_bytes());
  CHECK_EQ(calls_of([&] {
             plan->forward(a.x, a.y, saved);
             plan->backward(a.dy, a.y, a.dx, saved);
           }),
           "");
  a.gpu.context().synchronize(a.gpu.context().compute());
}

TEST_CASE("a step of a normalisation on the GPU allocates nothing and waits for nothing") {
  Arrays a(2048);
  const TensorDesc input{.shape = Shape{2, 4, 8, 8}};
  const auto batch = cuda::make_batch_norm(a.gpu.context(), {.input = input});
  const auto layer = cuda::make_layer_norm(a.gpu.context(), {.outer = 8, .inner = 64});
  const auto group = cuda::make_group_norm(a.gpu.context(), {.input = input, .groups = 2});
  void *saved = a.gpu.make(4096), *workspace = a.gpu.make(65536);
  float* running = a.gpu.put(std::vector<float>(9, 1));
  CHECK_EQ(calls_of([&] {
             batch->forward(a.x, a.w, a.b, running, running + 4, running + 8, a.y, saved);
             batch->backward(a.x, a.dy, a.w, a.dx, a.dw, a.db, false, saved, workspace);
             layer->forward(a.x, a.w, a.b, a.y, saved);
             layer->backward(a.x, a.dy, a.w, a.dx, a.dw, a.db, false, saved, workspace);
             group->forward(a.x, a.w, a.b, a.y, saved);
             group->backward(a.x, a.dy, a.w, a.dx, a.dw, a.db, false, saved, workspace);
           }),
           "");
  a.gpu.context().synchronize(a.gpu.context().compute());
}

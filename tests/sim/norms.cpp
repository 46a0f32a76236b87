// The GPU's normalisation plans beside the CPU's. Both sum in double and round the same formulas to float, so a result
// may differ where a sum's last bits, which depend on the order, move it over a rounding boundary: one or two units in
// the last place, relative to the largest term of the formula.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/cpu_plans.h"
#include "backend/cuda/cuda_plans.h"
#include "backend/cuda/reduction_shape.h"
#include "core/error.h"
#include "sim/gpu_arrays.h"
#include "support/golden.h"
#include "support/oracle.h"

using namespace lockstep;
using oracle::random_floats;
using test::differs;
using test::GpuArrays;

namespace {

constexpr double rel = 5e-7, abs_ = 1e-6;

size_t count_of(const Shape& shape) { return static_cast<size_t>(shape.numel()); }

struct Normed {
  std::vector<float> y, dx, dw, db;
};

void check_alike(const Normed& gpu, const Normed& cpu) {
  CHECK_EQ(differs(gpu.y, cpu.y, rel, abs_), "");
  CHECK_EQ(differs(gpu.dx, cpu.dx, rel, abs_), "");
  CHECK_EQ(differs(gpu.dw, cpu.dw, rel, abs_), "");
  CHECK_EQ(differs(gpu.db, cpu.db, rel, abs_), "");
}

struct Data {
  std::vector<float> x, dy, w, b;
  Data(size_t count, size_t parameters, bool affine) : x(random_floats(count, 1, 9, 12)), dy(random_floats(count, 2)) {
    if (affine) w = random_floats(parameters, 3), b = random_floats(parameters, 4);
  }
  static const float* or_null(const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); }
};

// Layer and group norm: one interface but for the type. Gradients twice, the second time added.
template <class Plan>
Normed run_cpu(Plan& plan, const Data& d) {
  Normed r{.y = std::vector<float>(d.x.size()), .dx = r.y, .dw = std::vector<float>(d.w.size()), .db = r.dw};
  std::vector<double> saved(plan.saved_bytes() / 8), workspace(plan.workspace_bytes() / 8);
  plan.forward(d.x.data(), Data::or_null(d.w), Data::or_null(d.b), r.y.data(), saved.data());
  for (const bool add : {false, true})
    plan.backward(d.x.data(), d.dy.data(), Data::or_null(d.w), r.dx.data(), d.w.empty() ? nullptr : r.dw.data(),
                  d.w.empty() ? nullptr : r.db.data(), add, saved.data(), workspace.data());
  return r;
}

template <class Plan>
Normed run_gpu(GpuArrays& gpu, Plan& plan, const Data& d) {
  const size_t n = d.x.size();
  float *x = gpu.put(d.x), *dy = gpu.put(d.dy), *w = gpu.put(d.w), *b = gpu.put(d.b), *y = gpu.floats(n),
        *dx = gpu.floats(n), *dw = gpu.floats(d.w.size()), *db = gpu.floats(d.w.size());
  void *saved = gpu.make(plan.saved_bytes()), *workspace = gpu.make(plan.workspace_bytes());
  plan.forward(x, w, b, y, saved);
  for (const bool add : {false, true}) plan.backward(x, dy, w, dx, dw, db, add, saved, workspace);
  return {gpu.get(y, n), gpu.get(dx, n), gpu.get(dw, d.w.size()), gpu.get(db, d.w.size())};
}

struct BatchNormRun {
  Normed values;
  std::vector<float> running;  // mean, variance, batches
};

// Two training steps, then gradients, the second time added.
BatchNormRun run_cpu(BatchNormPlan& plan, const Data& d, size_t channels) {
  BatchNormRun r;
  Normed& v = r.values;
  v.y.resize(d.x.size()), v.dx.resize(d.x.size()), v.dw.resize(d.w.size()), v.db.resize(d.w.size());
  std::vector<float> mean(channels, 0.5F), var(channels, 2), batches(1, 3);
  std::vector<double> saved(plan.saved_bytes() / 8);
  const float *w = Data::or_null(d.w), *b = Data::or_null(d.b);
  for (int step = 0; step < 2; ++step)
    plan.forward(d.x.data(), w, b, mean.data(), var.data(), batches.data(), v.y.data(), saved.data());
  for (const bool add : {false, true})
    if (!saved.empty())
      plan.backward(d.x.data(), d.dy.data(), w, v.dx.data(), w == nullptr ? nullptr : v.dw.data(),
                    w == nullptr ? nullptr : v.db.data(), add, saved.data(), nullptr);
  for (const auto* part : {&mean, &var, &batches}) r.running.insert(r.running.end(), part->begin(), part->end());
  return r;
}

BatchNormRun run_gpu(GpuArrays& gpu, BatchNormPlan& plan, const Data& d, size_t channels) {
  const size_t n = d.x.size();
  float *x = gpu.put(d.x), *dy = gpu.put(d.dy), *w = gpu.put(d.w), *b = gpu.put(d.b), *y = gpu.floats(n),
        *dx = gpu.put(std::vector<float>(n)), *dw = gpu.put(std::vector<float>(d.w.size())),
        *db = gpu.put(std::vector<float>(d.w.size()));
  std::vector<float> running(2 * channels + 1, 0.5F);
  std::fill_n(running.begin() + static_cast<std::ptrdiff_t>(channels), channels, 2.0F);
  running.back() = 3;
  float* device_running = gpu.put(running);
  void* saved = gpu.make(plan.saved_bytes());
  for (int step = 0; step < 2; ++step)
    plan.forward(x, w, b, device_running, device_running + channels, device_running + 2 * channels, y, saved);
  for (const bool add : {false, true})
    if (saved != nullptr) plan.backward(x, dy, w, dx, dw, db, add, saved, nullptr);
  return {{gpu.get(y, n), gpu.get(dx, n), gpu.get(dw, d.w.size()), gpu.get(db, d.w.size())},
          gpu.get(device_running, running.size())};
}

}  // namespace

TEST_CASE("batch norm on the GPU is that of the CPU in every layout") {
  for (const Shape& shape : {Shape{5, 32}, Shape{3, 16, 4, 5}, Shape{2, 48, 3, 3}, Shape{2, 1, 7, 9}, Shape{1, 3, 1, 2},
                             Shape{9, 3}, Shape{2, 2, 61, 67}}) {
    for (const int64_t block : {int64_t{1}, int64_t{8}, int64_t{16}, shape[1]}) {
      if (shape[1] % block != 0) continue;
      for (const Phase phase : {Phase::training, Phase::inference}) {
        for (const bool affine : {true, false}) {
          CAPTURE(shape.str());
          CAPTURE(block);
          CAPTURE(affine);
          const BatchNormSpec spec{.input = {.shape = shape, .channel_block = block},
                                   .momentum = affine ? std::optional(0.3) : std::nullopt,
                                   .affine = affine,
                                   .phase = phase};
          const auto channels = static_cast<size_t>(shape[1]);
          const Data d(count_of(shape), channels, affine);
          GpuArrays gpu;
          const auto expected = make_cpu_batch_norm(spec);
          const auto plan = cuda::make_batch_norm(gpu.context(), spec);
          const BatchNormRun a = run_gpu(gpu, *plan, d, channels), b = run_cpu(*expected, d, channels);
          check_alike(a.values, b.values);
          CHECK_EQ(differs(a.running, b.running, rel, 0), "");
        }
      }
    }
  }
}

TEST_CASE("batch norm on the GPU keeps a tiny variance around a large mean") {
  constexpr int count = 4096;  // their squares take more bits than a double has
  std::vector<float> x;
  double mean = 0, squares = 0;
  for (int i = 0; i < count; ++i) x.push_back(60000.0F + static_cast<float>(i % 7) / 256);
  for (const float value : x) mean += (static_cast<double>(value) - 60000) / count;
  for (const float value : x) squares += std::pow(static_cast<double>(value) - 60000 - mean, 2);
  GpuArrays gpu;
  const BatchNormSpec spec{.input = {.shape = Shape{count, 1}}, .eps = 0, .affine = false};
  const auto plan = cuda::make_batch_norm(gpu.context(), spec);
  float *y = gpu.floats(count), *moving = gpu.put(std::vector<float>(1)), *var = gpu.put(std::vector<float>(1));
  plan->forward(gpu.put(x), nullptr, nullptr, moving, var, gpu.put(std::vector<float>(1)), y,
                gpu.make(plan->saved_bytes()));
  CHECK_EQ(gpu.get(var, 1)[0], doctest::Approx(0.1 * squares / (count - 1)).epsilon(1e-6));
  const auto expected = static_cast<float>((6.0 / 256 - mean) / std::sqrt(squares / count));
  CHECK_EQ(differs(std::vector{gpu.get(y, count)[6]}, std::vector{expected}, 1e-6, 0), "");
}

TEST_CASE("batch norm on the GPU refuses one value per channel in training") {
  GpuArrays gpu;
  BatchNormSpec spec{.input = {.shape = Shape{1, 3}}};
  CHECK_THROWS_WITH_AS(cuda::make_batch_norm(gpu.context(), spec),
                       doctest::Contains("Expected more than 1 value per channel"), Error);
  spec.phase = Phase::inference;
  CHECK_NOTHROW(cuda::make_batch_norm(gpu.context(), spec));
  spec.input = {.shape = Shape{2, 10, 2, 2}, .channel_block = 4};
  CHECK_THROWS_AS(cuda::make_batch_norm(gpu.context(), spec), Error);
}

TEST_CASE("layer norm on the GPU is that of the CPU") {
  for (const auto& [outer, inner] : {std::pair{7, 1}, {7, 5}, {3, 64}, {1, 3001}, {2000, 33}, {0, 4}}) {
    for (const bool affine : {true, false}) {
      CAPTURE(outer);
      CAPTURE(inner);
      const LayerNormSpec spec{.outer = outer, .inner = inner, .affine = affine};
      const Data d(static_cast<size_t>(outer * inner), static_cast<size_t>(inner), affine);
      GpuArrays gpu;
      const auto expected = make_cpu_layer_norm(spec);
      const auto plan = cuda::make_layer_norm(gpu.context(), spec);
      check_alike(run_gpu(gpu, *plan, d), run_cpu(*expected, d));
    }
  }
  GpuArrays gpu;
  CHECK_THROWS_AS(cuda::make_layer_norm(gpu.context(), {.outer = 1, .inner = 0}), Error);
}

TEST_CASE("group norm on the GPU is that of the CPU") {
  for (const Shape& shape : {Shape{3, 12, 4, 5}, Shape{1, 8, 1, 1}, Shape{5, 6}, Shape{2, 4, 50, 61}}) {
    for (const int64_t groups : {int64_t{1}, int64_t{2}, shape[1]}) {
      for (const bool affine : {true, false}) {
        CAPTURE(shape.str());
        CAPTURE(groups);
        const GroupNormSpec spec{.input = {.shape = shape}, .groups = groups, .affine = affine};
        const Data d(count_of(shape), static_cast<size_t>(shape[1]), affine);
        GpuArrays gpu;
        const auto expected = make_cpu_group_norm(spec);
        const auto plan = cuda::make_group_norm(gpu.context(), spec);
        check_alike(run_gpu(gpu, *plan, d), run_cpu(*expected, d));
      }
    }
  }
  GpuArrays gpu;
  CHECK_THROWS_AS(cuda::make_group_norm(gpu.context(), {.input = {.shape = Shape{2, 6}}, .groups = 4}), Error);
}

TEST_CASE("sums of columns take a number of blocks that only the matrix decides") {
  for (const auto& [rows, columns, adjacent] :
       {std::tuple{size_t{1}, size_t{1}, true}, {100000, 3, false}, {100000, 3, true}, {7, 100000, true}}) {
    const cuda::ColumnShape shape = cuda::column_shape(rows, columns, adjacent);
    CHECK(shape.threads() * shape.lanes == cuda::reduction_threads);
    CHECK(shape.column_blocks() * shape.lanes >= columns);
    CHECK(shape.slices >= 1);
    CHECK(shape.slices <= 256);
    CHECK((shape.slices == 1) == (shape.parts() == 0));
  }
  CHECK(cuda::column_shape(100000, 3, false).slices > 1);  // so that both passes are tested
}

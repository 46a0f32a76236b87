// Norms that stay on the GPU, beside those that the CPU takes: clipping, LARS and LAMB.
#include "backend/slice_norms.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backend/cpu/optimizer_ops.h"
#include "backend/cuda/cuda_backend.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "sim/runtime/control.h"
#include "support/golden.h"

using namespace lockstep;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const CpuOptimizerOps kCpu;
// Of one chunk, of several with and without a rest, of none; with gaps.
const std::vector<ParameterRange> kSlices{{0, 10},     {16, 8192},  {8208, 30'001},
                                          {40'000, 0}, {40'000, 1}, {40'016, 16384}};
constexpr size_t kArena = 57'000;

std::vector<float> normal(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw;
  std::vector<float> values(count);
  for (float& value : values) value = draw(engine);
  return values;
}

// As often as the host found that an event had happened.
int host_waits() {
  int waits = 0;
  for (const sim::Traced& traced : sim::trace()) waits += traced.stream == 0;
  return waits;
}

struct Clipped {
  std::vector<float> arena;
  double norm;
};

Clipped clip(const OptimizerOps& ops, const Memory& memory, std::span<const ParameterRange> slices,
             const std::vector<float>& arena, double max_norm, double type) {
  const Buffer device = memory.allocate(arena.size() * sizeof(float));
  memory.upload(device.as<float>(), arena);
  NormClip clip(ops, slices, max_norm, type);
  const int waits = memory.host() ? 0 : host_waits(), mallocs = sim::calls()["cudaMalloc"];
  clip.clip(device.as<float>());
  if (!memory.host()) CHECK_EQ(host_waits(), waits);
  CHECK_EQ(sim::calls()["cudaMalloc"], mallocs);
  return {memory.downloaded(device.as<float>()), clip.norm()};
}

// Parameters after some steps, their momenta behind them.
struct Stepped {
  std::vector<float> values;
  int waits = 0, mallocs = 0;
};

Stepped steps(const OptimizerOps& ops, const Memory& memory, const OptimizerSettings& settings) {
  std::vector<ParameterGroup> groups{{"all", {kSlices[0], kSlices[2], kSlices[3]}, 0.1, 0.01},
                                     {"others", {kSlices[1]}, 0.05, 0},
                                     {"norm and bias", {kSlices[4], kSlices[5]}, 0.1, 0.02, false}};
  const auto optimizer =
      make_optimizer(settings, groups, kArena, ops, [&](size_t bytes) { return memory.allocate(bytes); });
  const Buffer p = memory.allocate(kArena * sizeof(float)), g = memory.allocate(kArena * sizeof(float));
  memory.upload(p.as<float>(), normal(kArena, 1));
  Stepped stepped;
  for (uint32_t t = 0; t < 3; ++t) {
    memory.upload(g.as<float>(), t == 1 ? std::vector<float>(kArena, 0) : normal(kArena, 2 + t));
    const int waits = host_waits(), mallocs = sim::calls()["cudaMalloc"];
    optimizer->step(p.as<float>(), g.as<float>());
    stepped.waits += host_waits() - waits, stepped.mallocs += sim::calls()["cudaMalloc"] - mallocs;
  }
  stepped.values = memory.downloaded(p.as<float>());
  for (const StateArray& state : optimizer->state()) {
    const std::vector<float> values = memory.downloaded(state.values);
    stepped.values.insert(stepped.values.end(), values.begin(), values.end());
  }
  return stepped;
}

}  // namespace

TEST_CASE("clipping on the GPU is the CPU's and the host waits for nothing") {
  sim::reset({});
  CudaBackend gpu({.index = 0});
  const std::vector<float> arena = normal(kArena, 3);
  for (const double type : {2.0, 1.0, 3.0, 0.5, kInf}) {
    for (const double max_norm : {1e-3, 1.0, 1e12}) {
      CAPTURE(type);
      CAPTURE(max_norm);
      const Clipped expected = clip(kCpu, host_memory(), kSlices, arena, max_norm, type);
      const Clipped found = clip(gpu.optimizer_ops(), gpu.memory(), kSlices, arena, max_norm, type);
      CHECK(found.norm == doctest::Approx(expected.norm).epsilon(2e-7));
      CHECK_EQ(test::differs(found.arena, expected.arena, 3e-7, 0), "");
      const Clipped again = clip(gpu.optimizer_ops(), gpu.memory(), kSlices, arena, max_norm, type);
      CHECK_EQ(test::differs_bits(again.arena, found.arena), "");
      CHECK((max_norm > 1e9) == (found.arena == arena));
      for (const size_t gap : {size_t{10}, size_t{15}, size_t{39'000}, size_t{40'001}})
        CHECK_EQ(found.arena[gap], arena[gap]);
    }
  }
  CHECK_EQ(clip(gpu.optimizer_ops(), gpu.memory(), {}, arena, 1, 2).norm, 0);
  CHECK_EQ(sim::last_misuse(), "");
}

TEST_CASE("what is not finite reaches every gradient on the GPU as on the CPU") {
  sim::reset({});
  CudaBackend gpu({.index = 0});
  const std::vector<ParameterRange> slices{{0, 2}, {3, 1}};
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (const double type : {1.0, 2.0, 2.5, kInf}) {
      const std::vector<float> arena{1, bad, 4, 2};
      const Clipped expected = clip(kCpu, host_memory(), slices, arena, 1, type);
      const Clipped found = clip(gpu.optimizer_ops(), gpu.memory(), slices, arena, 1, type);
      CHECK_EQ(std::isnan(found.norm), std::isnan(expected.norm));
      CHECK_EQ(std::isinf(found.norm), std::isinf(expected.norm));
      for (size_t i = 0; i < arena.size(); ++i) {
        CHECK_EQ(std::isnan(found.arena[i]), std::isnan(expected.arena[i]));
        if (!std::isnan(found.arena[i])) CHECK_EQ(found.arena[i], expected.arena[i]);
      }
    }
  }
}

TEST_CASE("LARS and LAMB on the GPU are the CPU's and the host waits for nothing") {
  OptimizerSettings lars, momentum, nesterov, lamb, maximize;
  lars.kind = momentum.kind = nesterov.kind = "lars";
  momentum.momentum = nesterov.momentum = 0.9, nesterov.nesterov = true;
  lamb.kind = maximize.kind = "lamb";
  maximize.maximize = momentum.maximize = true;
  for (const OptimizerSettings& settings : {lars, momentum, nesterov, lamb, maximize}) {
    CAPTURE(settings.kind);
    CAPTURE(settings.momentum);
    sim::reset({});
    CudaBackend gpu({.index = 0});
    const Stepped expected = steps(kCpu, host_memory(), settings);
    const Stepped found = steps(gpu.optimizer_ops(), gpu.memory(), settings);
    CHECK_EQ(test::differs(found.values, expected.values, 2e-6, 1e-9), "");
    CHECK_EQ(found.waits, 0);
    CHECK_EQ(found.mallocs, 0);
    CHECK_EQ(test::differs_bits(steps(gpu.optimizer_ops(), gpu.memory(), settings).values, found.values), "");
    CHECK_EQ(sim::last_misuse(), "");
  }
}

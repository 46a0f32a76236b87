// bench_probe: is the machine calm? Every rank computes for a moment at the same time and says at which rate, then they
// measure a barrier in shared memory. Prints one JSON line.
#include <immintrin.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "comm/factory.h"
#include "comm/mpi_env.h"
#include "core/cpu_features.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kChains = 16, kTurns = 20000;  // independent chains hide the latency of a multiply-add

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Each returns the floating-point operations of one call; `sink` keeps the result alive.
__attribute__((target("avx512f"))) double turn_avx512(float* sink) {
  __m512 chain[kChains];
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (auto& value : chain) value = _mm512_set1_ps(*sink);
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 16
    for (auto& value : chain) value = _mm512_fmadd_ps(value, a, b);
  }
  __m512 sum = chain[0];
  for (const auto& value : chain) sum = _mm512_add_ps(sum, value);
  *sink = _mm512_cvtss_f32(sum);
  return 2.0 * 16 * kChains * kTurns;
}

__attribute__((target("avx2,fma"))) double turn_avx2(float* sink) {
  constexpr int kFew = 10;  // sixteen registers, two of them for a and b
  __m256 chain[kFew];
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (auto& value : chain) value = _mm256_set1_ps(*sink);
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 16
    for (auto& value : chain) value = _mm256_fmadd_ps(value, a, b);
  }
  __m256 sum = chain[0];
  for (const auto& value : chain) sum = _mm256_add_ps(sum, value);
  *sink = _mm256_cvtss_f32(sum);
  return 2.0 * 8 * kFew * kTurns;
}

double turn_generic(float* sink) {
  float chain[4 * kChains];
  std::fill(std::begin(chain), std::end(chain), *sink);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (float& value : chain) value = value * 0.999f + 0.001f;
  }
  for (const float value : chain) *sink += value;
  return 2.0 * 4 * kChains * kTurns;
}

// Operations per second over `seconds`, in units of 1e9.
double gflops(double seconds) {
  static constexpr auto kAvx512 = turn_avx512, kAvx2 = turn_avx2, kGeneric = turn_generic;
  const auto turn = select_isa(kGeneric, kAvx2, kAvx512);
  float sink = 1;
  double operations = 0;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) operations += turn(&sink);
  return operations / seconds_since(start) / 1e9 + 1e-30 * sink;
}

double barrier_us(Communicator& communicator) {
  constexpr int kCalls = 2000;
  std::vector<double> us(kCalls);
  for (double& one : us) {
    const auto start = Clock::now();
    communicator.barrier();
    one = seconds_since(start) * 1e6;
  }
  std::nth_element(us.begin(), us.begin() + kCalls / 2, us.end());
  return us[kCalls / 2];
}

}  // namespace
}  // namespace lockstep::bench

int main() {
  using namespace lockstep;
  const MpiEnvironment mpi;
  const auto communicator = make_communicator("auto", mpi, 60, nullptr);
  communicator->barrier();
  const double mine = bench::gflops(0.15);
  std::vector<double> rates(static_cast<size_t>(mpi.size()));
  MPI_Allgather(&mine, 1, MPI_DOUBLE, rates.data(), 1, MPI_DOUBLE, mpi.world());
  const double barrier = bench::barrier_us(*communicator);
  if (mpi.rank() == 0) {
    const nlohmann::ordered_json line{{"gflops", rates}, {"barrier_us", barrier}, {"isa", name(detect_isa())}};
    std::printf("%s\n", line.dump().c_str());
  }
  return 0;
}

// ranks: 1 2 4
// links: comm
// Sums of device memory by way of the host: the bits of the tree, with any communicator behind.
#include <doctest/doctest.h>

#include <algorithm>

#include "comm/factory.h"
#include "comm/staged/staged_communicator.h"
#include "sim/device_arrays.h"
#include "sim/runtime/control.h"
#include "support/tree.h"

using namespace lockstep;
using test::download;
using test::Upload;

namespace {

constexpr size_t floats = 5000;

float value_of(int rank, size_t i) { return static_cast<float>(1 + rank) * (i % 3 == 0 ? 3e7f : 1.1f); }

std::vector<float> values_of(int rank, int ranks) {
  std::vector<float> values(floats);
  for (size_t i = 0; i < floats; ++i)
    values[i] = rank < 0 ? test::plain_tree(0, ranks, [&](int r) { return value_of(r, i); }) : value_of(rank, i);
  return values;
}

}  // namespace

TEST_CASE("sums by way of the host have the bits of the tree on ranks that share a GPU") {
  const MpiEnvironment env;
  for (const char* kind : {"auto", "mpi"}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      sim::reset({.seed = seed, .gpus = 1});
      cuda::Context context(0);
      StagedCommunicator comm(make_communicator(kind, env, 20, nullptr), context);
      CAPTURE(comm.name());
      const Buffer arena = comm.allocate(floats * sizeof(float));
      const std::span<float> gradients = arena.as<float>();
      const std::vector<float> values = values_of(env.rank(), env.size()), sums = values_of(-1, env.size());
      for (int step = 0; step < 3; ++step) {
        const auto first = gradients.first(1700), second = gradients.subspan(1700);
        const Upload a(context, context.compute(), std::span(values).first(1700), first.data());
        comm.start_sum(first);
        const Upload b(context, context.compute(), std::span(values).subspan(1700), second.data());
        comm.start_sum(second);
        comm.finish_sums();
        CHECK(download(context, context.compute(), gradients.data(), floats) == sums);
      }
      CHECK(sim::last_misuse() == "");
    }
  }
}

TEST_CASE("rounded sums by way of the host are those of the host") {
  const MpiEnvironment env;
  sim::reset({});
  cuda::Context context(0);
  StagedCommunicator comm(make_communicator("auto", env, 20, nullptr), context);
  const auto host = make_communicator("auto", env, 20, nullptr);
  const Buffer arena = comm.allocate(floats * sizeof(float)), plain = host->allocate(floats * sizeof(float));
  const std::vector<float> values = values_of(env.rank(), env.size());
  const Upload upload(context, context.compute(), values, arena.as<float>().data());
  std::ranges::copy(values, plain.as<float>().begin());
  comm.all_reduce_sum_in(WireFormat::bf16, arena.as<float>());
  host->all_reduce_sum_in(WireFormat::bf16, plain.as<float>());
  const std::vector<float> expected(plain.as<float>().begin(), plain.as<float>().end());
  CHECK(download(context, context.compute(), arena.as<float>().data(), floats) == expected);
}

TEST_CASE("memory that the communicator did not make is refused") {
  const MpiEnvironment env;
  sim::reset({});
  cuda::Context context(0);
  StagedCommunicator comm(make_communicator("auto", env, 20, nullptr), context);
  const Buffer other = context.allocate(64);
  CHECK_THROWS_WITH(comm.start_sum(other.as<float>()), "a sum of device memory that the communicator did not allocate");
}

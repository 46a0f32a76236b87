// ranks: 1 2 3 4
// links: comm
// Sums whose addends travel in 16 bits: on every communicator the bits of "round, add in float, round once", and on MPI
// half the bytes.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "comm/factory.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/shm/sum_kernels.h"

using namespace lockstep;

namespace {

constexpr WireFormat kFormats[] = {WireFormat::bf16, WireFormat::fp16};

std::vector<std::unique_ptr<Communicator>> communicators(const MpiEnvironment& env) {
  std::vector<std::unique_ptr<Communicator>> made;
  for (const char* kind : {"auto", "shm", "mpi"}) made.push_back(make_communicator(kind, env, 60, nullptr));
  made.push_back(
      std::make_unique<MpiCommunicator>(env.world(), MpiOptions{.timeout_seconds = 60, .chunk_limit = 1000}));
  return made;
}

float value_of(int rank, size_t i, int round) {
  return std::sin(static_cast<float>(i % 1000) * 0.71f + static_cast<float>(rank * 3 + round)) *
         (i % 3 == 0 ? 100.0f : 0.01f);
}

void fill(std::span<float> values, int rank, int round) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(rank, i, round);
}

std::vector<float> expected(WireFormat wire, size_t count, int ranks, int round) {
  std::vector<std::vector<float>> all(ranks, std::vector<float>(count));
  std::vector<const float*> pointers;
  for (int r = 0; r < ranks; ++r) {
    fill(all[r], r, round);
    round_to(wire, all[r]);
    pointers.push_back(all[r].data());
  }
  std::vector<float> sum(count);
  sum_into(sum.data(), pointers.data(), ranks, count);
  round_to(wire, sum);
  return sum;
}

bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace

TEST_CASE("compressed sums are rounded addends added in float and rounded once") {
  const MpiEnvironment env;
  int round = 0;
  for (const auto& comm : communicators(env)) {
    CAPTURE(comm->name());
    const Buffer buffer = comm->allocate(400'100 * sizeof(float));
    for (const WireFormat wire : kFormats) {
      for (const size_t count : {0, 1, 100, 752, 5000, 70'001, 400'000}) {
        const auto wanted = expected(wire, count, env.size(), ++round);
        const auto values = buffer.as<float>().subspan(16, count);
        fill(values, env.rank(), round);
        comm->all_reduce_sum_in(wire, values);
        CHECK(equal_bits(values, wanted));
        std::vector<float> outside(count);  // in no window
        fill(outside, env.rank(), round);
        comm->all_reduce_sum_in(wire, outside);
        CHECK(equal_bits(outside, wanted));
      }
    }
  }
}

TEST_CASE("compressed sums that start early have the same bits") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    CAPTURE(comm->name());
    constexpr size_t bucket = 3001, buckets = 40;  // more than can be in flight
    const Buffer buffer = comm->allocate(bucket * buckets * sizeof(float));
    for (int round = 0; round < 4; ++round) {
      const WireFormat wire = kFormats[round % 2];
      for (size_t b = 0; b < buckets; ++b) {
        const auto values = buffer.as<float>().subspan(b * bucket, bucket);
        fill(values, env.rank(), round);
        comm->start_sum_in(b % 5 == 4 ? WireFormat::fp32 : wire, values);  // kinds may be mixed
        comm->poll_sums();
      }
      comm->finish_sums();
      size_t wrong = 0;
      for (size_t b = 0; b < buckets; ++b)
        wrong += !equal_bits(buffer.as<float>().subspan(b * bucket, bucket),
                             expected(b % 5 == 4 ? WireFormat::fp32 : wire, bucket, env.size(), round));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("on MPI a compressed sum sends half the bytes") {
  const MpiEnvironment env;
  MpiCommunicator comm(env.world());
  for (const size_t count : {3'000, 120'000, 5'000'000}) {  // the smallest sums travel with the header, uncounted
    std::vector<float> values(count, 1.0f);
    const uint64_t start = comm.bytes_sent();
    comm.all_reduce_sum(values);
    const uint64_t plain = comm.bytes_sent() - start;
    for (const WireFormat wire : kFormats) {
      const uint64_t before = comm.bytes_sent();
      comm.all_reduce_sum_in(wire, values);
      CHECK(2 * (comm.bytes_sent() - before) == plain);
    }
    if (env.size() > 1) CHECK(plain > 0);
    // A slice to each rank and its sum to each rank: 2 (n - 1) / n of the array, whole slices.
    const auto ranks = static_cast<uint64_t>(env.size());
    if (count == 5'000'000) CHECK(plain <= 2 * (ranks - 1) * ((count + ranks - 1) / ranks + 8) * sizeof(float));
  }
}

TEST_CASE("the error of a compressed sum is that of its format") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    constexpr size_t count = 50'000;
    for (const WireFormat wire : kFormats) {
      std::vector<float> exact(count), rounded(count);
      for (size_t i = 0; i < count; ++i)
        exact[i] = 1.0f + 0.5f * std::sin(static_cast<float>(i * 7) + 0.1f * static_cast<float>(env.rank()));
      rounded = exact;  // nothing cancels
      comm->all_reduce_sum(exact);
      comm->all_reduce_sum_in(wire, rounded);
      double error = 0, norm = 0;
      for (size_t i = 0; i < count; ++i) {
        error += std::pow(static_cast<double>(rounded[i]) - exact[i], 2);
        norm += std::pow(static_cast<double>(exact[i]), 2);
      }
      // An addend and the sum are each wrong by half a unit in the last of 8 or 11 bits at most, mostly by less.
      const double unit = wire == WireFormat::bf16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -11);
      CHECK(std::sqrt(error / norm) < unit);
      CHECK(std::sqrt(error / norm) > 0.1 * unit);
    }
  }
}

TEST_CASE("overflow on the wire and in the sum comes out infinite on all ranks") {
  const MpiEnvironment env;
  for (const auto& comm : communicators(env)) {
    for (const size_t count : {10, 40'000}) {
      std::vector<float> values(count, 1.0f);
      values[3] = 40'000.0f;                                    // two of them are too much for fp16
      if (env.rank() == env.size() - 1) values[5] = 70'000.0f;  // one is
      values[7] = std::numeric_limits<float>::quiet_NaN();
      comm->all_reduce_sum_in(WireFormat::fp16, values);
      CHECK(std::isinf(values[3]) == (env.size() > 1));
      CHECK(std::isinf(values[5]));
      CHECK(std::isnan(values[7]));
      CHECK(values[9] == static_cast<float>(env.size()));
    }
  }
}

#include "comm/all_reduce_bench.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "comm/factory.h"
#include "comm/shm/shared_segment.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void write(std::span<float> values, float base) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = base + 1e-3f * static_cast<float>(i & 1023);
}

uint32_t read(std::span<const float> values) {
  uint32_t bits = 0;
  for (const float& value : values) {
    uint32_t word = 0;
    std::memcpy(&word, &value, sizeof(word));
    bits ^= word;
  }
  return bits;
}

struct Block {
  double reduce_us, total_us;  // per call
};

struct Arrays {
  std::span<float> gradients, parameters;
};

// `work` makes new parameters of the gradients and returns how long the part of it took that is measured. Of the
// slowest rank. The first call is not timed: with and without a sum, the arrays are where such calls leave them.
Block time_block(MPI_Comm world, const Arrays& arrays, int calls, const std::function<double()>& work) {
  static std::atomic<uint32_t> sink{0};  // keeps what is read alive
  uint32_t bits = 0;
  double block[2] = {};
  mpi::check(MPI_Barrier(world), "MPI_Barrier");
  auto start = Clock::now();
  for (int call = -1; call < calls; ++call) {
    if (call == 0) start = Clock::now(), block[0] = 0;
    write(arrays.gradients, static_cast<float>(call));
    block[0] += work();
    bits ^= read(arrays.parameters);
  }
  block[1] = us_since(start);
  sink = sink ^ bits;
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, block, 2, MPI_DOUBLE, MPI_MAX, world), "MPI_Allreduce");
  return {block[0] / calls, block[1] / calls};
}

// How many times MPI's cost is this one's; 100 where that is hardly any. Noise may make of little less than nothing.
double ratio(double mpi, double own) {
  mpi = std::max(mpi, 1e-3);
  return mpi / std::max(own, mpi / 100);
}

}  // namespace

struct AllReduceBench::Path {
  std::string name;
  std::shared_ptr<Communicator> communicator;  // none: MPI_Allreduce
  bool window;                                 // gradients live in the communicator's memory
  bool sharded = false;                        // so do parameters: each rank sums and updates its share

  void reduce(std::span<float> values, MPI_Comm world) const {
    if (communicator != nullptr) return communicator->all_reduce_sum(values);
    const auto count = static_cast<int>(values.size());
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, world), "MPI_Allreduce");
  }

  // As dist/sharded_update.cpp does it.
  void update_share(const Arrays& arrays, const std::function<void(size_t, float*, const float*)>& update) const {
    Shards& shards = *communicator->shards();
    const Shard mine = shards.of(arrays.gradients.size(), communicator->rank());
    std::array<float, Shards::block> sum;
    shards.begin(arrays.gradients);
    for (size_t done = 0; done < mine.count;) {
      const size_t first = mine.first + done, count = std::min(sum.size(), mine.count - done);
      shards.sum(first, std::span(sum).first(count));
      update(count, &arrays.parameters[first], sum.data());
      shards.store(arrays.parameters.subspan(first, count));
      done += count;
    }
    shards.end();
  }
};

AllReduceBench::AllReduceBench(const MpiEnvironment& environment, const OptimizerOps& ops)
    : environment_(environment), ops_(ops) {
  constexpr double timeout_seconds = 120;
  const auto make = [&](std::string_view kind) {
    return std::shared_ptr<Communicator>(make_communicator(kind, environment_, timeout_seconds, nullptr));
  };
  paths_.push_back({"MPI_Allreduce", nullptr, false});
  paths_.push_back({"mpi", make("mpi"), false});
  const auto node = make(environment_.nodes() == 1 ? "shm" : "hierarchical");
  if (node->name() == "mpi") return;  // ranks are placed so that it makes no sense
  paths_.push_back({std::string(node->name()), node, true});
  if (node->shards() != nullptr) paths_.push_back({std::string(node->name()) + " sharded", node, true, true});
  paths_.push_back({std::string(node->name()) + " private", node, false});
}

AllReduceBench::~AllReduceBench() = default;

std::vector<AllReduceCost> AllReduceBench::measure(size_t bytes, int blocks) {
  const int calls = bytes <= 65536 ? 200 : static_cast<int>(std::clamp<size_t>(20'000'000 / bytes, 1, 20));
  if (blocks == 0) blocks = bytes <= 5'000'000 ? 41 : 11;
  std::vector<Buffer> memory;
  std::vector<Arrays> arrays;
  std::span<float> window;  // of gradients, for all paths that have one
  for (const Path& path : paths_) {
    if (!path.window || window.empty()) {
      memory.push_back(path.window ? path.communicator->allocate(bytes) : Buffer::host(bytes));
      if (path.window) window = memory.back().as<float>();
    }
    const std::span<float> gradients = path.window ? window : memory.back().as<float>();
    memory.push_back(path.sharded ? path.communicator->allocate(bytes) : Buffer::host(bytes));
    arrays.push_back({gradients, memory.back().as<float>()});
  }
  const auto update = [&](size_t n, float* p, const float* g) { ops_.sgd({.lr = 1e-3}, n, p, g, nullptr); };
  std::vector<std::vector<double>> latency(paths_.size()), marginal(paths_.size());
  for (int block = -1; block < blocks; ++block) {
    for (size_t i = 0; i < paths_.size(); ++i) {
      const Path& path = paths_[i];
      const auto [g, p] = arrays[i];
      const auto update_all = [&, g = g, p = p] { update(g.size(), p.data(), g.data()); };
      const auto with = time_block(environment_.world(), arrays[i], calls, [&, g = g] {
        const auto before = Clock::now();
        path.sharded ? path.update_share(arrays[i], update) : path.reduce(g, environment_.world());
        const double us = us_since(before);
        if (!path.sharded) update_all();
        return us;
      });
      const auto without = time_block(environment_.world(), arrays[i], calls, [&] { return update_all(), 0.0; });
      if (block < 0) continue;  // warms up
      latency[i].push_back(with.reduce_us);
      marginal[i].push_back(with.total_us - without.total_us);
    }
  }
  std::vector<AllReduceCost> costs;
  for (size_t i = 0; i < paths_.size(); ++i) {
    const auto median_ratio = [&](const std::vector<std::vector<double>>& us) {
      std::vector<double> ratios;
      for (size_t k = 0; k < us[i].size(); ++k) ratios.push_back(ratio(us[0][k], us[i][k]));
      return median(ratios);
    };
    costs.push_back(
        {paths_[i].name, median(latency[i]), median(marginal[i]), median_ratio(latency), median_ratio(marginal)});
  }
  return costs;
}

double core_round_trip_us(const MpiEnvironment& environment) {
  if (environment.local_size() == 1) return 0;
  constexpr uint64_t trips = 2000;
  constexpr int blocks = 15;
  const SharedSegment shared(environment.node(), 128);
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(shared.part(0)));
  const auto me = static_cast<uint64_t>(environment.local_rank());
  std::vector<double> us;
  for (int block = 0; block < blocks; ++block) {
    mpi::check(MPI_Barrier(environment.node()), "MPI_Barrier");
    const auto start = Clock::now();
    const uint64_t first = static_cast<uint64_t>(block) * 2 * trips;
    for (uint64_t turn = first + me; me < 2 && turn < first + 2 * trips; turn += 2) {
      while (word.load(std::memory_order_acquire) != turn) {
      }
      word.store(turn + 1, std::memory_order_release);
    }
    us.push_back(us_since(start) / trips);
  }
  double middle = median(us);
  mpi::check(MPI_Bcast(&middle, 1, MPI_DOUBLE, 0, environment.node()), "MPI_Bcast");
  return middle;
}

double bus_gigabytes_per_second(size_t bytes, double us, int ranks) {
  return static_cast<double>(bytes) / us * 1e-3 * 2 * (ranks - 1) / ranks;
}

}  // namespace lockstep

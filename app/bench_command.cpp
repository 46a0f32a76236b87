// lockstep bench allreduce: what an all-reduce costs on these ranks, for each communicator beside MPI_Allreduce.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "backend/cpu/optimizer_ops.h"
#include "comm/abort_all.h"
#include "comm/all_reduce_bench.h"
#include "comm/malloc_policy.h"
#include "comm/run_agreed.h"
#include "core/error.h"
#include "core/log.h"

namespace lockstep::app {
namespace {

struct Options {
  std::vector<size_t> sizes{256, 3008, 16384, 65536, 1 << 20, 4'800'000, 25'000'000, 100'000'000};
  int calls = 0, pretend_nodes = 0;
  bool default_malloc = false, json = false;
};

constexpr const char* how_to_read =
    "latency: of the call; bus: what each rank must move at least, 2 (n-1)/n of the bytes, per latency; marginal: "
    "what the\nsum adds to writing a gradient, updating as many parameters with it (SGD), and reading them; ratio: how "
    "many times\nMPI_Allreduce's cost is this one's (median of side-by-side ratios, above 1 is faster than MPI; 100: "
    "that or more)\nsharded: each rank sums and updates its share, so its latency holds that share of the update\n";

int measure(const Options& options, const MpiEnvironment& mpi) {
  const bool speaks = mpi.rank() == 0;
  const CpuOptimizerOps ops;
  AllReduceBench bench(mpi, ops);
  const double round_trip = core_round_trip_us(mpi);
  nlohmann::json report{{"ranks", mpi.size()}, {"nodes", mpi.nodes()}, {"core_round_trip_us", round_trip}};
  if (speaks && !options.json) {
    std::printf("%d ranks on %d node(s)%s", mpi.size(), mpi.nodes(), options.pretend_nodes > 0 ? " (pretended)" : "");
    if (round_trip > 0) std::printf(", %.3f us from core to core and back", round_trip);
    std::printf("\n%s%12s %-20s %12s %10s %8s %12s %8s\n", how_to_read, "bytes", "path", "latency us", "bus GB/s",
                "ratio", "marginal us", "ratio");
  }
  for (const size_t bytes : options.sizes) {
    for (const AllReduceCost& cost : bench.measure(bytes, options.calls)) {
      if (!speaks) continue;
      const double bus = bus_gigabytes_per_second(bytes, cost.latency_us, mpi.size());
      report["all_reduce"].push_back({{"bytes", bytes},
                                      {"path", cost.path},
                                      {"latency_us", cost.latency_us},
                                      {"bus_gb_s", bus},
                                      {"latency_ratio", cost.latency_ratio},
                                      {"marginal_us", cost.marginal_us},
                                      {"marginal_ratio", cost.marginal_ratio}});
      if (options.json) continue;
      std::printf("%12zu %-20s %12.2f %10.2f %8.2f %12.2f %8.2f\n", bytes, cost.path.c_str(), cost.latency_us, bus,
                  cost.latency_ratio, cost.marginal_us, cost.marginal_ratio);
      std::fflush(stdout);
    }
  }
  if (speaks && options.json) std::printf("%s\n", report.dump().c_str());
  return kSuccess;
}

int all_reduce(const Options& options) {
  if (!options.default_malloc) keep_large_blocks();
  MpiEnvironment::Pretend pretend;
  if (const int nodes = options.pretend_nodes; nodes > 0)
    pretend = [nodes](int rank, int size) { return rank / ((size + nodes - 1) / nodes); };
  const MpiEnvironment mpi(pretend);
  log::setup(mpi.rank(), mpi.size(), {.quiet = options.json});
  if (mpi.size() == 1) {
    std::fprintf(stderr,
                 "lockstep bench allreduce: one rank has nobody to reduce with, its figures would mean nothing; "
                 "start it as: mpirun -np 2 lockstep bench allreduce\n");
    return kWrongInput;
  }
  try {
    return measure(options, mpi);
  } catch (const PoliteError& error) {
    if (mpi.rank() == 0) std::fprintf(stderr, "lockstep: %s\n", error.what());
    return kRunFailed;
  } catch (const std::exception& error) {
    abort_all(mpi.world(), kRunFailed, error);
  }
}

}  // namespace

Command add_bench(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* bench = parent.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand("allreduce", "All-reduce by size, each communicator beside MPI_Allreduce");
  command->add_option("--sizes", options->sizes, "Bytes: 3008,1048576,25000000")
      ->delimiter(',')
      ->check(CLI::Range(size_t{4}, size_t{1} << 32))
      ->capture_default_str();
  command->add_option("--calls", options->calls, "Measurements per size; 0: what suits the size")
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--pretend-nodes", options->pretend_nodes, "Treat the ranks of one machine as those of so many")
      ->check(CLI::Range(0, 1 << 20));
  command->add_flag("--default-malloc", options->default_malloc,
                    "Leave malloc as it is: MPI_Allreduce then faults in its temporary memory anew each time");
  command->add_flag("--json", options->json, "Print one JSON object");
  return [options] { return all_reduce(*options); };
}

}  // namespace lockstep::app

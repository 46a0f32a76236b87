#include "bench/step_result.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace lockstep::bench {
namespace {

// The value below which `fraction` of the sorted values lie, nearest rank.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(std::lround(fraction * last))];
}

std::vector<double> joined_blocks(const StepResult& mine, MPI_Comm world, int ranks) {
  std::vector<double> blocks = mine.block_us;
  const auto count = static_cast<int>(blocks.size());
  if (!mine.independent) {
    MPI_Allreduce(MPI_IN_PLACE, blocks.data(), count, MPI_DOUBLE, MPI_MAX, world);
  } else {
    for (double& us : blocks) us = 1 / us;
    MPI_Allreduce(MPI_IN_PLACE, blocks.data(), count, MPI_DOUBLE, MPI_SUM, world);
    for (double& rate : blocks) rate = ranks / rate;
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

nlohmann::ordered_json counts_json(const Counts& mine, int64_t per, MPI_Comm world) {
  double sums[4] = {static_cast<double>(mine.page_faults), static_cast<double>(mine.allocations.own),
                    static_cast<double>(mine.allocations.onednn), static_cast<double>(mine.allocations.mpi)};
  MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE, MPI_SUM, world);
  for (double& sum : sums) sum /= static_cast<double>(per);
  nlohmann::ordered_json json{{"page_faults", sums[0]}};
  if (!allocations_are_counted()) return json;
  json["allocations"] = {{"own", sums[1]}, {"onednn", sums[2]}, {"mpi", sums[3]}};
  return json;
}

}  // namespace

Counts counts_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.page_faults = usage.ru_minflt, .allocations = allocation_count()};
}

std::string to_json(const StepResult& mine, MPI_Comm world) {
  int ranks = 1;
  MPI_Comm_size(world, &ranks);
  const std::vector<double> blocks = joined_blocks(mine, world, ranks);
  const double us = quantile(blocks, 0.5);
  nlohmann::ordered_json json{
      {"world_size", mine.world_size},
      {"trainings", mine.independent ? ranks : 1},
      {"batch", mine.batch},
      {"threads", mine.threads},
      {"device", mine.device},
      {"communicator", mine.communicator},
      {"isa", mine.isa},
      {"arithmetic", mine.arithmetic},
      {"native", mine.native},
      {"steps", mine.steps},
      {"us_per_step", {{"median", us}, {"p10", quantile(blocks, 0.1)}, {"p90", quantile(blocks, 0.9)}}},
      {"steps_per_second", 1e6 / us},
      {"samples_per_second", 1e6 / us * static_cast<double>(mine.batch * ranks)},
      {"steady_step", counts_json(mine.in_steady, mine.steps, world)},
      {"start_up", counts_json(mine.before_steady, 1, world)}};
  if (mine.loss_steps > 0) json["loss"] = {{"steps", mine.loss_steps}, {"value", mine.loss}};
  return json.dump();
}

}  // namespace lockstep::bench

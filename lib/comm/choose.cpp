#include "comm/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

constexpr size_t sizes[] = {16 << 10, 1 << 20};  // bytes: the first bucket of a small net, one of a larger one
constexpr double most_calls = 20;

double seconds_of(Communicator& comm, std::span<float> values) {
  comm.barrier();
  const auto start = std::chrono::steady_clock::now();
  comm.all_reduce_sum(values);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  comm.all_reduce({&seconds, 1}, ReduceOp::max);  // the slowest rank's
  return seconds;
}

// The median; the first call, which may set up connections, only says how many there is time for.
double median_seconds(Communicator& comm, std::span<float> values, double budget_seconds) {
  const double first = seconds_of(comm, values);
  const int calls = static_cast<int>(std::clamp(budget_seconds / std::max(first, 1e-6), 1.0, most_calls));
  std::vector<double> times;
  for (int call = 0; call < calls; ++call) times.push_back(seconds_of(comm, values));
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[static_cast<size_t>(calls / 2)];
}

}  // namespace

size_t choose_fastest(std::span<const std::unique_ptr<Communicator>> candidates, double budget_seconds,
                      std::string& why) {
  size_t best = 0;
  double best_score = 0;
  why.clear();
  for (size_t i = 0; i < candidates.size(); ++i) {
    Communicator& comm = *candidates[i];
    const Buffer buffer = comm.allocate(*std::max_element(std::begin(sizes), std::end(sizes)));
    double score = 0;
    why += fmt::format("{}{}", i == 0 ? "" : "; ", comm.name());
    for (const size_t bytes : sizes) {
      const double share = budget_seconds / static_cast<double>(candidates.size() * std::size(sizes));
      const double seconds = median_seconds(comm, buffer.as<float>().first(bytes / sizeof(float)), share);
      score += std::log(std::max(seconds, 1e-9));
      why += fmt::format(" {} KB {:.0f} us", bytes >> 10, seconds * 1e6);
    }
    if (i == 0 || score < best_score) best = i, best_score = score;
  }
  return best;
}

}  // namespace lockstep

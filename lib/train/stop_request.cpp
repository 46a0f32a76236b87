#include "train/stop_request.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>

#include "core/log.h"
#include "core/stop_signals.h"
#include "train/slurm_job.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double shortest_pause = 1e-3, longest_pause = 50e-3;  // seconds between agreements
constexpr double cost_share = 0.01;                             // of the time may go into agreeing

// A reason as a number, of which the ranks find the largest: kind * 2^32 + (2^32 - 1 - rank), exact in a double. So of
// several ranks with the same reason the first is named. Kinds above `first_signal` are signals.
constexpr int max_time_kind = 1, slurm_kind = 2, first_signal = 3;
constexpr double kind_unit = 4294967296.0;

double encode(int kind, int rank) { return kind * kind_unit + (kind_unit - 1 - rank); }

std::string describe(double code) {
  const double kind = std::floor(code / kind_unit);
  if (kind == max_time_kind) return "max_time";
  if (kind == slurm_kind) return "Slurm's time limit";
  const auto rank = static_cast<int>(kind_unit - 1 - (code - kind * kind_unit));
  return fmt::format("{} on rank {}", signal_name(static_cast<int>(kind) - first_signal), rank);
}

double seconds_of(Clock::time_point time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

std::optional<double> slurm_limit(const RunConfig& run) {
  try {
    const auto left = slurm_seconds_left();
    if (left) return seconds_of(Clock::now()) + *left - run.time_margin.seconds;
  } catch (const std::exception& error) {
    log::warning("the time limit of the Slurm job is not known, so the run won't end before it: {}", error.what());
  }
  return std::nullopt;
}

}  // namespace

StopSources stop_sources(const RunConfig& run, int rank, Clock::time_point program_start) {
  StopSources sources;
  sources.now = [] { return seconds_of(Clock::now()); };
  if (!run.stop_signals.empty())
    sources.signal = [signals = std::make_shared<StopSignals>(run.stop_signals)] { return signals->received(); };
  if (run.max_time) sources.max_time_at = seconds_of(program_start) + run.max_time->seconds;
  if (rank == 0) sources.slurm_end_at = slurm_limit(run);
  return sources;
}

StopRequest::StopRequest(StopSources sources, Communicator& communicator)
    : sources_(std::move(sources)), communicator_(communicator) {
  double watched = sources_.signal || sources_.max_time_at || sources_.slurm_end_at ? 1 : 0;
  communicator_.all_reduce({&watched, 1}, ReduceOp::max);
  if (watched == 0) interval_ = calls_left_ = 0;
}

void StopRequest::change_pace() {
  if (calls_left_ == 0) return;
  interval_ = calls_left_ = 1;
  last_ = -1;
}

double StopRequest::code(double now) const {
  if (sources_.signal) {
    if (const int number = sources_.signal(); number != 0) return encode(first_signal + number, communicator_.rank());
  }
  if (communicator_.rank() != 0) return 0;
  if (sources_.slurm_end_at && now >= *sources_.slurm_end_at) return encode(slurm_kind, 0);
  return sources_.max_time_at && now >= *sources_.max_time_at ? encode(max_time_kind, 0) : 0;
}

int64_t StopRequest::next_interval(double seconds_per_call, double cost) const {
  const double pause = std::clamp(cost / cost_share, shortest_pause, longest_pause);
  const double calls = seconds_per_call > 0 ? std::floor(pause / seconds_per_call) : std::numeric_limits<double>::max();
  // By doubling at most, so that one short measurement can't put the next look far off.
  return static_cast<int64_t>(std::clamp(calls, 1.0, 2.0 * static_cast<double>(interval_)));
}

// The slowest rank's time per call counts, and what agreeing costs the rank that comes last and waits for nobody.
std::optional<std::string> StopRequest::agree() {
  const double begin = sources_.now();
  const double per_call = last_ < 0 ? longest_pause : (begin - last_) / static_cast<double>(interval_);
  double words[] = {code(begin), per_call, -cost_};
  communicator_.all_reduce(words, ReduceOp::max);
  if (words[0] != 0) {
    calls_left_ = 0;
    return reason_ = describe(words[0]);
  }
  calls_left_ = interval_ = next_interval(words[1], -words[2]);
  last_ = sources_.now();
  cost_ = last_ - begin;
  return std::nullopt;
}

}  // namespace lockstep

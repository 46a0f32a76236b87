#include "core/supervisor.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "core/error.h"
#include "core/stop_signals.h"

namespace lockstep {
namespace {

constexpr double longest_delay = 300;  // seconds

// The launches of one supervised command.
class Launches {
 public:
  Launches(const SupervisorSettings& settings, const std::function<void(const std::string&)>& tell)
      : settings_(settings),
        tell_(tell),
        launcher_(settings.pass_as),
        ranks_(rank_count(settings.command).value_or(0)) {}

  int run() {
    LaunchEnd end = launch(settings_.command);
    for (int64_t restart = 1; wants_restart(end, restart); ++restart) {
      if (!pause_before(end, restart)) return end.code;
      end = launch(command());
      while (lowered_ && end.code == settings_.refused_code && !launcher_.asked_to_stop() && lower_ranks())
        end = launch(command());
      failed_soon_ = end.seconds < settings_.soon;
    }
    return end.code;
  }

 private:
  CommandLine command() const {
    CommandLine again = resuming(settings_.command);
    return ranks_ > 0 ? with_ranks(std::move(again), ranks_) : again;
  }

  LaunchEnd launch(const CommandLine& command) {
    const LaunchEnd end = launcher_.run(command);
    soon_in_a_row_ = end.seconds < settings_.soon ? soon_in_a_row_ + 1 : 0;
    say(fmt::format("ended after {:.1f} s with {}", end.seconds, end.describe()));
    return end;
  }

  bool wants_restart(const LaunchEnd& end, int64_t restart) {
    if (launcher_.asked_to_stop()) {
      say(fmt::format("not started again: {} came", signal_name(launcher_.signal())));
    } else if (end.code == settings_.stopped_code) {
      say("not started again: the run was asked to end and has saved its state");
    } else if (end.code == settings_.refused_code) {
      say("not started again: the command or its files are wrong");
    } else if (end.code != 0 && restart > settings_.max_restarts) {
      say(fmt::format("not started again: {} restart(s) are spent", settings_.max_restarts));
    } else {
      return end.code != 0;
    }
    return false;
  }

  // Waits, says what comes; false: a signal came meanwhile.
  bool pause_before(const LaunchEnd& end, int64_t restart) {
    const bool fewer = failed_soon_ && settings_.min_ranks && lower_ranks();
    const int64_t doublings = std::clamp<int64_t>(soon_in_a_row_ - 1, 0, 30);
    const double delay = std::min(longest_delay, settings_.delay * static_cast<double>(int64_t{1} << doublings));
    say(fmt::format("restart {} of {} in {:g} s{}, because of {}", restart, settings_.max_restarts, delay,
                    fewer ? fmt::format(" on {} ranks", ranks_) : "", end.describe()));
    launcher_.pause(delay);
    if (launcher_.asked_to_stop()) say(fmt::format("not started again: {} came", signal_name(launcher_.signal())));
    return !launcher_.asked_to_stop();
  }

  bool lower_ranks() {
    if (ranks_ <= settings_.min_ranks.value_or(ranks_)) return false;
    --ranks_;
    lowered_ = true;
    return true;
  }

  void say(const std::string& text) const {
    tell_(fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {}", fmt::gmtime(std::time(nullptr)), text));
  }

  const SupervisorSettings& settings_;
  const std::function<void(const std::string&)>& tell_;
  Launcher launcher_;
  int64_t ranks_;
  bool failed_soon_ = false;   // the last restart
  int64_t soon_in_a_row_ = 0;  // launches that ended so
  bool lowered_ = false;
};

}  // namespace

void check(const SupervisorSettings& settings) {
  if (settings.command.empty()) throw_error("no command: lockstep run [OPTION...] -- mpirun -np 4 lockstep train FILE");
  if (const auto path = resumed_path(settings.command); path && *path != "auto")
    throw_error("--resume {}: each restart would begin there again; use --resume auto", *path);
  if (!settings.min_ranks) return;
  const auto ranks = rank_count(settings.command);
  if (!ranks) throw_error("--min-ranks: the command has no -np N, -n N or --ntasks N that could be lowered");
  if (*settings.min_ranks > *ranks)
    throw_error("--min-ranks {}: the command starts {} only", *settings.min_ranks, *ranks);
}

int supervise(const SupervisorSettings& settings, const std::function<void(const std::string&)>& tell) {
  check(settings);
  return Launches(settings, tell).run();
}

}  // namespace lockstep

#include "core/stop_signals.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace lockstep {
namespace {

struct NamedSignal {
  const char* name;
  int number;
  bool may_stop;
};

constexpr NamedSignal named[] = {
    {"SIGTERM", SIGTERM, true},  {"SIGINT", SIGINT, true},    {"SIGUSR1", SIGUSR1, true},  {"SIGUSR2", SIGUSR2, true},
    {"SIGHUP", SIGHUP, true},    {"SIGXCPU", SIGXCPU, true},  {"SIGALRM", SIGALRM, true},  {"SIGKILL", SIGKILL, false},
    {"SIGSEGV", SIGSEGV, false}, {"SIGBUS", SIGBUS, false},   {"SIGABRT", SIGABRT, false}, {"SIGFPE", SIGFPE, false},
    {"SIGILL", SIGILL, false},   {"SIGQUIT", SIGQUIT, false}, {"SIGPIPE", SIGPIPE, false}, {"SIGXFSZ", SIGXFSZ, false},
};

std::atomic<int> noted = 0;
static_assert(std::atomic<int>::is_always_lock_free, "only lock-free atomics may be used by a signal handler");

void note(int number) {
  int none = 0;
  noted.compare_exchange_strong(none, number, std::memory_order_relaxed);
}

}  // namespace

std::string signal_name(int number) {
  const auto* entry = std::ranges::find(named, number, &NamedSignal::number);
  return entry == std::end(named) ? fmt::format("signal {}", number) : entry->name;
}

int signal_number(std::string_view name) {
  for (const NamedSignal& entry : named)
    if (entry.may_stop && name == entry.name) return entry.number;
  return 0;
}

std::vector<std::string> stop_signal_names() {
  std::vector<std::string> names;
  for (const NamedSignal& entry : named)
    if (entry.may_stop) names.emplace_back(entry.name);
  return names;
}

StopSignals::StopSignals(const std::vector<std::string>& names) {
  noted = 0;
  for (const std::string& name : names)
    if (signal_number(name) == 0) throw_error("'{}' is no signal that can ask a run to stop", name);
  for (const std::string& name : names) {
    const int number = signal_number(name);
    struct sigaction action = {}, before = {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    if (number == SIGINT) action.sa_flags |= static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, &before) != 0) throw_error("{} cannot be caught: {}", name, std::strerror(errno));
    before_.emplace_back(number, before);
  }
}

StopSignals::~StopSignals() {
  for (auto entry = before_.rbegin(); entry != before_.rend(); ++entry)
    sigaction(entry->first, &entry->second, nullptr);
}

int StopSignals::received() const { return noted.load(std::memory_order_relaxed); }

}  // namespace lockstep

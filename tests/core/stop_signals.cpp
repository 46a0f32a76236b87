// Signals are noted while somebody watches, and do what they did before when nobody does any more.
#include "core/stop_signals.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

using namespace lockstep;

namespace {

// How a child process ends that does this: its signal, or 0 when it gets to the end.
template <class Work>
int signal_of_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGTERM, SIGINT}) signal(number, SIG_DFL);  // not the test framework's
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("the first signal is noted and the program goes on") {
  const StopSignals signals({"SIGTERM", "SIGUSR1"});
  CHECK_EQ(signals.received(), 0);
  raise(SIGUSR1);
  CHECK_EQ(signals.received(), SIGUSR1);
  raise(SIGTERM);
  CHECK_EQ(signals.received(), SIGUSR1);
}

TEST_CASE("a new watch starts with nothing noted") {
  {
    const StopSignals signals({"SIGTERM"});
    raise(SIGTERM);
  }
  CHECK_EQ(StopSignals({"SIGTERM"}).received(), 0);
}

TEST_CASE("the second SIGINT ends the program and a second SIGTERM does not") {
  CHECK_EQ(signal_of_child([] {
             const StopSignals signals({"SIGINT", "SIGTERM"});
             raise(SIGTERM), raise(SIGTERM), raise(SIGINT);
           }),
           0);
  CHECK_EQ(signal_of_child([] {
             const StopSignals signals({"SIGINT"});
             raise(SIGINT), raise(SIGINT);
           }),
           SIGINT);
}

TEST_CASE("signals that are not named or no longer watched do what they did") {
  CHECK_EQ(signal_of_child([] {
             const StopSignals signals({"SIGTERM"});
             raise(SIGUSR1);
           }),
           SIGUSR1);
  CHECK_EQ(signal_of_child([] {
             { const StopSignals signals({"SIGTERM"}); }
             raise(SIGTERM);
           }),
           SIGTERM);
}

TEST_CASE("signals that cannot ask for an end are refused") {
  for (const char* name : {"SIGKILL", "SIGSEGV", "TERM", ""}) CHECK_THROWS_AS(StopSignals({name}), Error);
  CHECK_EQ(signal_name(SIGSEGV), "SIGSEGV");
  CHECK_EQ(signal_name(77), "signal 77");
}

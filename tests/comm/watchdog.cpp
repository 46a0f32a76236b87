// The watchdog ends a process that waits too long, with a message, and leaves all others alone.
#include "comm/watchdog.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

using namespace lockstep;

namespace {

struct End {
  int code = -1;
  std::string output;
};

End child(const std::function<void(Watchdog&)>& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    {
      Watchdog watchdog("rank 3", 7);
      work(watchdog);
    }
    _exit(0);
  }
  close(ends[1]);
  End end;
  char text[256];
  for (ssize_t got = 0; (got = read(ends[0], text, sizeof text)) > 0;)
    end.output.append(text, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  return end;
}

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

TEST_CASE("a wait beyond the limit ends the process and says where it was") {
  const End end = child([](Watchdog& watchdog) {
    watchdog.expect("MPI_Init", 60);
    watchdog.expect("MPI_Finalize", 0.2);
    pause(20);
  });
  CHECK_EQ(end.code, 7);
  CHECK_EQ(end.output,
           "rank 3: waited 0.2 s in MPI_Finalize for other ranks: one that does not say this has not come so far\n");
}

TEST_CASE("a wait that ends in time or is of no interest leaves the process alone") {
  CHECK_EQ(child([](Watchdog& watchdog) {
             watchdog.expect("MPI_Init", 0.2);
             watchdog.rest();
             pause(0.5);
           }).code,
           0);
  CHECK_EQ(child([](Watchdog& watchdog) {
             watchdog.expect("MPI_Init", 0.2);
             watchdog.expect("something else", 30);
             pause(0.5);
           }).code,
           0);
  CHECK_EQ(child([](Watchdog&) {}).code, 0);
}

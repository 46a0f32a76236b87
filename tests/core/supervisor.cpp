// Commands that fail and are started again: small shell programs that count their starts and do in each what the case
// wants.
#include "core/supervisor.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/error.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

// A folder with a program: "sh program COUNT ARGUMENT...", COUNT being 1 in the first start; what it was called with.
class Program {
 public:
  explicit Program(const std::string& body)
      : folder_(fs::temp_directory_path() / ("lockstep-supervisor-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "program") << "cd " << folder_.string() << "\necho \"$@\" >> calls\n"
                                       << "start=$(wc -l < calls)\n"
                                       << body << "\n";
  }
  ~Program() { fs::remove_all(folder_); }

  CommandLine command(const std::vector<std::string>& arguments = {}) const {
    CommandLine words{"sh", (folder_ / "program").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  std::vector<std::string> lines(const std::string& file) const {
    std::ifstream stream(folder_ / file);
    std::vector<std::string> all;
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }
  std::vector<std::string> calls() const { return lines("calls"); }

 private:
  fs::path folder_;
};

struct Supervised {
  int code = -1;
  std::string told;
  bool says(const std::string& text) const { return told.find(text) != std::string::npos; }
};

Supervised run(SupervisorSettings settings) {
  Supervised result;
  settings.delay = settings.delay == 1 ? 0.01 : settings.delay;
  result.code = supervise(settings, [&](const std::string& line) { result.told += line + "\n"; });
  return result;
}

// Sends a signal to this process after a while, from a process outside of its family.
void signal_later(int number, double seconds) {
  const pid_t target = getpid(), child = fork();
  if (child == 0) {
    if (fork() != 0) _exit(0);
    usleep(static_cast<useconds_t>(seconds * 1e6));
    kill(target, number);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

}  // namespace

TEST_CASE("a command that succeeds is run once and as it is") {
  const Program program("exit 0");
  const Supervised result = run({.command = program.command({"train", "a b", "--overwrite"}), .max_restarts = 3});
  CHECK_EQ(result.code, 0);
  CHECK_EQ(program.calls(), std::vector<std::string>{"train a b --overwrite"});
}

TEST_CASE("a command that fails is started again from its checkpoint until it succeeds") {
  const Program program("[ $start -lt 3 ] && exit 1; exit 0");
  const Supervised result = run({.command = program.command({"train", "--overwrite"}), .max_restarts = 5});
  CHECK_EQ(result.code, 0);
  CHECK_EQ(program.calls(),
           std::vector<std::string>{"train --overwrite", "train --resume auto", "train --resume auto"});
  CHECK(result.says("restart 2 of 5 in 0.02 s, because of exit code 1\n"));
}

TEST_CASE("the delay does not grow where launches last for a while") {
  const Program program("[ $start -lt 4 ] && exit 1; exit 0");
  const Supervised result = run({.command = program.command(), .max_restarts = 5, .soon = 0});
  CHECK_EQ(result.code, 0);
  CHECK(result.says("restart 3 of 5 in 0.01 s"));
}

TEST_CASE("the number of restarts is kept and the last exit code is the answer") {
  const Program program("[ $start -lt 3 ] && kill -9 $$; exit 7");
  const Supervised result = run({.command = program.command({"--resume", "auto"}), .max_restarts = 2});
  CHECK_EQ(result.code, 7);
  CHECK_EQ(program.calls(), std::vector<std::string>(3, "--resume auto"));
  CHECK(result.says("because of signal SIGKILL\n"));
  CHECK(result.says("ended after 0.0 s with exit code 7\n"));
  CHECK(result.says("2 restart(s) are spent\n"));
}

TEST_CASE("wrong input and a run that was asked to end are not started again") {
  for (const int code : {2, 75}) {
    const Program program("exit " + std::to_string(code));
    CHECK_EQ(run({.command = program.command(), .max_restarts = 3}).code, code);
    CHECK_EQ(program.calls().size(), 1u);
  }
}

TEST_CASE("a signal is passed on and there is no restart after it") {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
    CAPTURE(number);
    const Program program("for s in TERM INT USR1; do trap \"echo $s >> got; exit 9\" $s; done\nsleep 20 & wait");
    signal_later(number, 0.3);
    const auto start = std::chrono::steady_clock::now();
    const Supervised result = run({.command = program.command(), .max_restarts = 3});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
    CHECK_EQ(result.code, 9);
    CHECK_EQ(program.calls().size(), 1u);
    CHECK_EQ(program.lines("got").size(), 1u);
    CHECK(result.says(" came\n"));
  }
}

TEST_CASE("SIGTERM can be passed on as another signal") {
  const Program program("trap 'echo USR1 > got; exit 75' USR1\nsleep 20 & wait");
  signal_later(SIGTERM, 0.3);
  CHECK_EQ(run({.command = program.command(), .max_restarts = 3, .pass_as = SIGUSR1}).code, 75);
  CHECK_EQ(program.lines("got"), std::vector<std::string>{"USR1"});
}

TEST_CASE("the second SIGINT ends a command that does not listen") {
  const Program program("trap '' INT\nsleep 20");
  signal_later(SIGINT, 0.3);
  signal_later(SIGINT, 0.6);
  const auto start = std::chrono::steady_clock::now();
  CHECK_EQ(run({.command = program.command(), .max_restarts = 3}).code, 128 + SIGKILL);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("a signal during the pause before a restart ends the supervisor") {
  const Program program("exit 1");
  signal_later(SIGTERM, 0.3);
  const auto start = std::chrono::steady_clock::now();
  CHECK_EQ(run({.command = program.command(), .max_restarts = 3, .delay = 20}).code, 1);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  CHECK_EQ(program.calls().size(), 1u);
}

TEST_CASE("what a failed command leaves behind is gone before it is started again") {
  // A process of its own session, as mpirun's ranks are of their own groups.
  const Program program(
      "[ $start -eq 1 ] && { setsid sh -c 'trap \"\" TERM; echo $$ >> left; sleep 30' & sleep 0.3; exit 1; }\n"
      "kill -0 $(cat left) 2> /dev/null && exit 9; exit 0");
  CHECK_EQ(run({.command = program.command(), .max_restarts = 1}).code, 0);
  CHECK_EQ(program.lines("left").size(), 1u);
}

TEST_CASE("ranks are given up one by one where restarts fail soon and never below the minimum") {
  const Program program("exit 1");
  const Supervised result = run({.command = program.command({"-np", "4", "train"}), .max_restarts = 5, .min_ranks = 2});
  CHECK_EQ(result.code, 1);
  const std::vector<std::string> expected{"-np 4 train",
                                          "-np 4 train --resume auto",
                                          "-np 3 train --resume auto",
                                          "-np 2 train --resume auto",
                                          "-np 2 train --resume auto",
                                          "-np 2 train --resume auto"};
  CHECK_EQ(program.calls(), expected);
  CHECK(result.says(" on 3 ranks, because of exit code 1\n"));
}

TEST_CASE("a number of ranks that the run refuses is passed over and costs no restart") {
  const Program program("[ $2 = 3 ] && exit 2; [ $2 = 2 ] && exit 0; exit 1");
  CHECK_EQ(run({.command = program.command({"-np", "4"}), .max_restarts = 2, .min_ranks = 1}).code, 0);
  CHECK_EQ(program.calls().back(), "-np 2 --resume auto");
  const Program strict("[ $2 -lt 4 ] && exit 2; exit 1");
  CHECK_EQ(run({.command = strict.command({"-np", "4"}), .max_restarts = 9, .min_ranks = 2}).code, 2);
  CHECK_EQ(strict.calls().size(), 4u);
}

TEST_CASE("ranks are kept where restarts last") {
  const Program program("exit 1");
  run({.command = program.command({"-np", "4"}), .max_restarts = 3, .min_ranks = 2, .soon = 0});
  CHECK_EQ(program.calls().back(), "-np 4 --resume auto");
}

TEST_CASE("commands that cannot be started again are refused") {
  CHECK_THROWS_AS(run({.command = {}}), Error);
  CHECK_THROWS_AS(run({.command = {"train", "--resume", "runs/a"}}), Error);
  CHECK_THROWS_AS(run({.command = {"train", "--resume=runs/a"}}), Error);
  CHECK_THROWS_AS(run({.command = {"sh", "-c", "exit"}, .min_ranks = 2}), Error);
  CHECK_THROWS_AS(run({.command = {"mpirun", "-np", "2"}, .min_ranks = 3}), Error);
  CHECK_THROWS_WITH_AS(run({.command = {"no-such-program"}}),
                       "no-such-program cannot be started: No such file or directory", Error);
}

TEST_CASE("the number of ranks is found in the forms of mpirun and srun") {
  CHECK_EQ(rank_count({"mpirun", "-np", "4", "x"}), 4);
  CHECK_EQ(rank_count({"mpirun", "-x", "-n", "-n", "3"}), 3);
  CHECK_EQ(rank_count({"srun", "--ntasks=12", "x"}), 12);
  CHECK_EQ(with_ranks({"srun", "--ntasks=12", "x"}, 11), CommandLine{"srun", "--ntasks=11", "x"});
  for (const CommandLine& command : {CommandLine{}, CommandLine{"mpirun", "-np"}, CommandLine{"mpirun", "-n", "x"},
                                     CommandLine{"mpirun", "--np=0"}, CommandLine{"mpirun", "-np4"}})
    CHECK_FALSE(rank_count(command).has_value());
}

// Asking another program: its answer, its code, its silence.
#include "core/run_program.h"

#include <doctest/doctest.h>

#include <chrono>

#include "core/error.h"

using namespace lockstep;

TEST_CASE("a program's words and code are its answer and no shell comes between") {
  const ProgramAnswer answer = run_program({"printf", "%s|", "a b", "$HOME", "*"}, 10);
  CHECK_EQ(answer.exit_code, 0);
  CHECK_EQ(answer.output, "a b|$HOME|*|");
  const ProgramAnswer failed = run_program({"sh", "-c", "echo well; echo ill >&2; exit 3"}, 10);
  CHECK_EQ(failed.exit_code, 3);
  CHECK_EQ(failed.output, "well\nill\n");
  CHECK_EQ(run_program({"sh", "-c", "kill -9 $$"}, 10).exit_code, 137);
}

TEST_CASE("a program that does not answer in time is ended") {
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH_AS(run_program({"sleep", "30"}, 0.2), "sleep has not answered within 0.2 s", Error);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("endless words do not fill the memory nor stop the program") {
  const ProgramAnswer answer = run_program({"head", "-c", "1000000", "/dev/zero"}, 10);
  CHECK_EQ(answer.exit_code, 0);
  CHECK_EQ(answer.output.size(), 64u << 10);
}

TEST_CASE("a program that is not there is named") {
  CHECK_THROWS_WITH_AS(run_program({"no-such-program"}, 10),
                       "no-such-program cannot be started: No such file or directory", Error);
}

// A program for the failure tests: comm_failing_rank throw|kill|late|polite KIND. Rank 1 goes wrong in the middle of a
// loop of reductions; the output and exit code show how the run ends.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "comm/abort_all.h"
#include "comm/factory.h"
#include "comm/run_agreed.h"

using namespace lockstep;

namespace {

void reduce_until_failure(const MpiEnvironment& env, const std::string& how, const std::string& kind) {
  const auto comm = make_communicator(kind, env, how == "late" ? 1 : 120, nullptr);
  const Buffer gradients = comm->allocate(100'000);
  for (int step = 0; step < 1'000'000; ++step) {
    comm->all_reduce_sum(gradients.as<float>());
    if (env.rank() != 1 || step != 100) continue;
    if (how == "throw") throw_error("step {}: the disk is full", step);
    if (how == "kill") raise(SIGKILL);
    if (how == "late")
      for (;;) pause();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "throw", kind = argc > 2 ? argv[2] : "auto";
  try {
    const MpiEnvironment env;
    try {
      if (how == "polite") run_agreed(env.world(), [] { throw_error("train.epochs: expected a number, found many"); });
      reduce_until_failure(env, how, kind);
    } catch (const PoliteError& error) {
      if (env.rank() == 0) std::fprintf(stderr, "%s\n", error.what());
      return 3;
    } catch (const std::exception& error) {
      abort_all(env.world(), 4, error);
    }
  } catch (const std::exception& error) {  // MPI did not start as it should
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}

// What the whole program on simulated GPUs is told by its environment, before main():
// LOCKSTEP_SIM_SEED of the order of streams (each rank has its own), LOCKSTEP_SIM_GPUS of a node, and
// LOCKSTEP_SIM_FAIL=RANK:FUNCTION:N, the call that fails there (no FUNCTION: the Nth of all), or with N=CODE the code
// that it returns. LOCKSTEP_SIM_COUNT=FILE: rank 0 leaves the number of all its calls there.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>

#include "sim/runtime/control.h"

namespace {

using namespace lockstep;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int number(const std::string& text, int otherwise) { return text.empty() ? otherwise : std::stoi(text); }

class Settings {
 public:
  Settings() : rank_(number(variable("OMPI_COMM_WORLD_RANK"), 0)) {
    const int seed = number(variable("LOCKSTEP_SIM_SEED"), 1) + 100 * rank_;
    sim::reset({.seed = static_cast<uint64_t>(seed), .gpus = number(variable("LOCKSTEP_SIM_GPUS"), 8)});
    const std::string fail = variable("LOCKSTEP_SIM_FAIL");
    if (fail.empty()) return;
    const size_t first = fail.find(':'), last = fail.rfind(':');
    const size_t equals = fail.find('=', last);
    if (std::stoi(fail.substr(0, first)) == rank_)
      sim::fail_call(fail.substr(first + 1, last - first - 1), std::stoi(fail.substr(last + 1)),
                     equals == fail.npos ? 0 : std::stoi(fail.substr(equals + 1)));
  }
  ~Settings() {
    const std::string file = variable("LOCKSTEP_SIM_COUNT");
    if (file.empty() || rank_ != 0) return;
    const auto calls = sim::calls();
    std::ofstream(file) << std::accumulate(calls.begin(), calls.end(), 0,
                                           [](int sum, const auto& call) { return sum + call.second; });
  }

 private:
  int rank_;
};

const Settings settings;

}  // namespace

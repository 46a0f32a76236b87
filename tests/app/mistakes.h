// The table of mistakes.
#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

struct Mistake {
  std::string what;
  std::string config;                  // of config.yaml
  std::vector<std::string> arguments;  // FOLDER stands for the folder of config.yaml
  std::vector<std::string> told;       // parts of the message, in its order: where, what, how to mend it
  int exit_code = 2;
  int ranks = 1;
  std::vector<std::string> prefix = {};  // of the command: makes a small disk; left out where that is not permitted
  std::vector<std::string> gpus = {};    // variables for the program on simulated GPUs; left out where it is not built
};
const std::vector<Mistake>& mistakes();

// A config with nothing wrong.
inline constexpr const char* kSound =
    "model: {layers: [{linear: 4}, relu, {linear: 2}]}\n"
    "data: {train: {kind: synthetic, name: toy_train}}\n"
    "train: {epochs: 1, batch_size: 2}\n";

inline constexpr const char* kErrorsIntroduction =
    "# What the program says to mistakes\n\n"
    "Made by `tests/app/mistakes.cpp`, which makes each of these mistakes and compares. A message says where "
    "(file:line:column,\n"
    "`--set KEY`, or the rank), what was expected and found, and, where that is not plain, how to mend it. Exit code "
    "2: wrong input,\n"
    "nothing was trained; 1: the run failed.\n\n"
    "| Mistake | Message (`...`: left out) |\n|---|---|\n";

}  // namespace lockstep::test

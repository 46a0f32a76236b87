// Damaged files: always a Config or an Error with a position, never anything else.
#include <doctest/doctest.h>

#include <random>

#include "config_support.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kValid =
    "model:\n  layers: [{conv2d: {out: 8, kernel: [3, 3], padding: 1}, name: conv1}, relu, {add: conv1}, {linear: "
    "10}]\n"
    "data:\n  train: &set {kind: idx, images: \"a.gz\", labels: b.gz, normalize: {mean: 0.1307, std: 0.3081}}\n  val: "
    "*set\n"
    "train:\n  epochs: 3\n  batch_size: 16 # per rank\n  class_weights: [1, 1e-3, .5]\n"
    "optimizer: {kind: adamw, lr: 1e-4, betas: [0.9, 0.999], groups: [{match: [norm, 'fc*'], lr: 0.1}]}\n"
    "schedule: {kind: sequence, schedules: [{kind: linear, total: 3}, cosine], milestones: [3]}\n"
    "eval: {every: 1 epoch}\ndevice: auto\n";

const std::vector<std::string> kPieces{"{",    "}",   "[",     "]",        ":",    ": ",     ",",     "- ",   "\n",
                                       "\n  ", "\t",  "\"",    "'",        "#",    "&a ",    "*a",    "!!",   "? ",
                                       "|",    ">",   "---\n", "%",        "null", "~",      "<<",    "1e99", "-1",
                                       "true", "0x1", "\xff",  "\xC3\xA4", "lr: ", "kind: ", "...\n", "@",    "\\"};

std::string mutate(std::string text, std::mt19937& engine) {
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(engine); };
  const size_t edits = 1 + pick(4);
  for (size_t i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = pick(text.size());
    switch (pick(6)) {
      case 0: text.erase(at, 1 + pick(8)); break;
      case 1: text.insert(at, kPieces[pick(kPieces.size())]); break;
      case 2: text[at] = static_cast<char>(pick(256)); break;
      case 3: text.insert(at, text.substr(pick(text.size()), 1 + pick(40))); break;
      case 4: text.resize(at); break;
      default: std::swap(text[at], text[pick(text.size())]); break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("mutations of a valid file are accepted or refused with a position") {
  REQUIRE_EQ(message(kValid), "accepted");
  std::mt19937 engine(20240607);
  int accepted = 0;
  constexpr int kCases = 4000;
  for (int i = 0; i < kCases; ++i) {
    const std::string text = mutate(kValid, engine);
    const std::string result = message(text);
    if (result == "accepted") {
      ++accepted;
      const std::string printed = to_yaml(parse_config(text, "config.yaml", {}));
      CHECK_EQ(message(printed), "accepted");
    } else if (!result.starts_with("config.yaml:")) {
      CAPTURE(text);
      FAIL("no position: " << result);
    }
  }
  CHECK_GT(accepted, 50);  // the mutations are neither harmless nor all fatal
  CHECK_LT(accepted, kCases - 50);
}

TEST_CASE("mutations of overrides are accepted or refused by their key") {
  const std::vector<std::string> valid{"train.batch_size=8",
                                       "model.layers.0.conv2d.out=4",
                                       "optimizer={kind: sgd, lr: 0.1}",
                                       "optimizer.groups.0.match=[a, b]",
                                       "schedule.schedules.1.t_max=7",
                                       "device.threads=2"};
  std::mt19937 engine(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string set = mutate(valid[static_cast<size_t>(i) % valid.size()], engine);
    const std::string result = message(kValid, {set});
    const bool located = result == "accepted" || result.starts_with("--set ") || result.starts_with("config.yaml:");
    if (!located) FAIL("no position: " << result);
  }
  for (const std::string& set : valid) CHECK_EQ(message(kValid, {set}), "accepted");
}

TEST_CASE("long runs of one piece end quickly") {
  for (const std::string& piece : kPieces) {
    std::string text;
    while (text.size() < 20000) text += piece;
    const std::string result = message(text);
    CAPTURE(piece);
    CHECK(result.starts_with("config.yaml:"));
  }
}

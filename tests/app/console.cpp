// What people see of a run: a bar where they watch, plain lines elsewhere, the same lines in the run's folder.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/run_folder.h"

using namespace lockstep::test;

namespace {

constexpr const char* kRun =
    "model: {layers: [{linear: 8}, relu, {linear: 2}]}\n"
    "data:\n"
    "  train: {kind: synthetic, name: teacher, samples: 64, shape: [4], classes: 2}\n"
    "  val: {kind: synthetic, name: teacher, samples: 16, shape: [4], classes: 2}\n"
    "train: {epochs: 400, batch_size: 2}\n"
    "log: {every: 500}\n";

// The command at a terminal of its own.
Outcome at_terminal(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) line += fmt::format("'{}' ", word);
  return run_process({"script", "-qefc", line, "/dev/null"}, 100);
}

bool has_codes(const std::string& output) { return output.find('\033') != std::string::npos; }

}  // namespace

TEST_CASE("at a terminal mpirun's first rank shows a line that moves and elsewhere plain lines") {
  const RunFolder folder(kRun);
  const std::vector<std::string> command = mpirun(2, folder.command("watched", {}));
  const Outcome watched = at_terminal(command), piped = run_process(command, 100);
  CAPTURE(watched.output.substr(0, 2000));
  CHECK(watched.exit_code == 0);
  CHECK(watched.says("\r\033[Kepoch "));
  CHECK(watched.count(" left") > 1);
  CHECK_FALSE(watched.says("step    500"));
  CHECK(watched.says("validation  loss"));
  CHECK(piped.exit_code == 0);
  CHECK_FALSE(has_codes(piped.output));
  CHECK(piped.says("step    500 (5/16)"));
  // The folder has all lines, whoever watched.
  CHECK(bytes_of(folder / "watched/stdout").find("step    500 (5/16)") != std::string::npos);
  CHECK_FALSE(has_codes(bytes_of(folder / "watched/stdout")));
}

TEST_CASE("a run's folder holds config and metrics and events and what was said") {
  const RunFolder folder(kRun);
  REQUIRE(folder.train("run", 1, {"--set", "train.epochs=2"}).exit_code == 0);
  int events = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run"))
    events += entry.path().filename().string().starts_with("events.out.tfevents.");
  CHECK(events == 1);
  CHECK(bytes_of(folder / "run/stdout").starts_with("1 rank(s) on 1 node(s)"));
  CHECK(bytes_of(folder / "run/stdout").find("best val.loss") != std::string::npos);
  REQUIRE(folder.train("run", 1, {"--set", "train.epochs=2", "--set", "log.tensorboard=false"}).exit_code == 0);
  REQUIRE(folder.train("other", 1, {"--set", "train.epochs=2", "--set", "log.tensorboard=false"}).exit_code == 0);
  CHECK_FALSE(std::filesystem::is_empty(folder / "other"));
  for (const auto& entry : std::filesystem::directory_iterator(folder / "other"))
    CHECK_FALSE(entry.path().filename().string().starts_with("events"));
}

TEST_CASE("quiet and log-every and all-ranks and color do what they say") {
  const RunFolder folder(kRun);
  const std::vector<std::string> few{"--set", "train.epochs=20", "--set", "distributed.world_size=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), few.begin(), few.end());
    return folder.train("run", 2, more);
  };
  const Outcome quiet = with({"--quiet"});
  CHECK(quiet.exit_code == 0);
  CHECK(quiet.output.empty());
  CHECK(with({"--log-every", "100"}).count("/16)  loss") == 5);  // 0 100 200 300 319, of 320
  const Outcome all = with({"--all-ranks"});
  CHECK(all.says("[rank 0] 2 rank(s)"));
  CHECK(all.says("[rank 1] 2 rank(s)"));
  // More threads than cores: a warning.
  const std::vector<std::string> crowded{"--set", "device.threads=999"};
  std::vector<std::string> colored = crowded, plain = crowded;
  colored.insert(colored.end(), {"--color", "always"});
  CHECK(with(colored).says("\033[33mwarning:\033[0m"));
  const Outcome uncolored = with(plain);
  CHECK(uncolored.says("warning:"));
  CHECK_FALSE(has_codes(uncolored.output));
}

TEST_CASE("top shows a run that has ended and refuses what is none") {
  const RunFolder folder(kRun);
  REQUIRE(folder.train("run", 2, {"--set", "train.epochs=3"}).exit_code == 0);
  const Outcome top = run_process({LOCKSTEP_BINARY, "top", folder / "run"}, 20);
  CAPTURE(top.output);
  CHECK(top.exit_code == 0);
  CHECK(top.says("ended        3       48/48 100 %"));
  const Outcome none = run_process({LOCKSTEP_BINARY, "top", folder / "nothing"}, 20);
  CHECK(none.exit_code == 2);
  CHECK(none.says("expected the folder of a run, found none"));
}

// lr-find and tune under mpirun: what they write is a config that trains.
#include <doctest/doctest.h>

#include <filesystem>

#include "support/run_folder.h"

using namespace lockstep::test;

namespace {

constexpr const char* kRun =
    "model: {layers: [{linear: 16}, relu, {linear: 3}]}\n"
    "data: {train: {kind: synthetic, name: teacher, samples: 512, shape: [8], classes: 3}}\n"
    "train: {epochs: 2, batch_size: 16}\n"
    "optimizer: {kind: sgd, lr: 1e-9, momentum: 0.9}\n";

Outcome on_ranks(const RunFolder& folder, int ranks, const std::vector<std::string>& words) {
  std::vector<std::string> command{LOCKSTEP_BINARY, words.front(), folder / "run.yaml"};
  command.insert(command.end(), words.begin() + 1, words.end());
  command.insert(command.end(), {"--set", "run.dir=" + (folder / "run").string()});
  return run_process(mpirun(ranks, command), 100);
}

}  // namespace

TEST_CASE("lr-find writes its picture and a config whose rate trains") {
  const RunFolder folder(kRun);
  const Outcome found = on_ranks(folder, 2, {"lr-find", "--out", folder / "found.yaml"});
  CAPTURE(found.output);
  REQUIRE(found.exit_code == 0);
  CHECK(found.count("chosen: optimizer.lr") == 1);
  CHECK(bytes_of(folder / "run/lr_find/lr_find.svg").find("</svg>") != std::string::npos);
  const auto last_loss = [&](const std::string& config) {
    const Outcome run =
        run_process({LOCKSTEP_BINARY, "train", config, "--set", "run.dir=" + (folder / "try").string()}, 60);
    CHECK(run.exit_code == 0);
    const std::string log = bytes_of(folder / "try/metrics.jsonl");
    const size_t at = log.rfind("\"loss\":");
    return std::stod(log.substr(at + 7));
  };
  CHECK(last_loss(folder / "found.yaml") < 0.8 * last_loss(folder / "run.yaml"));
}

TEST_CASE("tune times each setting and writes a config that trains") {
  const RunFolder folder(kRun);
  const Outcome tuned = on_ranks(folder, 2, {"tune", "--steps", "5", "--out", folder / "tuned.yaml"});
  CAPTURE(tuned.output);
  REQUIRE(tuned.exit_code == 0);
  CHECK(tuned.count("chosen") == 1);
  CHECK(bytes_of(folder / "tuned.yaml").find("bucket_mb: ") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "run"));  // nothing of the trials is left
  CHECK(run_process({LOCKSTEP_BINARY, "train", folder / "tuned.yaml", "--set", "run.dir=" + (folder / "try").string()},
                    60)
            .exit_code == 0);
  CHECK(tuned.count("       1       1024 ") == 1);  // threads, MiB of a bucket
  const Outcome shared = on_ranks(
      folder, 2, {"tune", "--steps", "5", "--out", folder / "tuned.yaml", "--set", "distributed.sharded_update=on"});
  CAPTURE(shared.output);
  CHECK(shared.exit_code == 0);
  CHECK(shared.count("       1         25 ") == 1);
  CHECK(shared.count("       1       1024 ") == 0);  // there are no buckets
}

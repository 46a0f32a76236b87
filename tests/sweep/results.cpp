// The table of a sweep in its three forms.
#include "sweep/results.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sweep/commands.h"

using namespace lockstep;

namespace {

Trial trial(int64_t world_size, int64_t batch_size) {
  Trial made;
  made.name = "world_size=" + std::to_string(world_size) + ",batch_size=" + std::to_string(batch_size);
  made.dir = "/tmp/50%/" + made.name;
  made.world_size = world_size;
  made.batch_size = batch_size;
  made.global_batch = world_size * batch_size;
  return made;
}

TrialOutcome outcome(double rate, double loss) {
  TrialOutcome made{.state = TrialOutcome::State::done, .problem = {}, .run = RunData{}};
  for (int64_t step = 0; step < 3; ++step)
    made.run->steps.push_back({.step = step,
                               .epoch = 0,
                               .samples_seen = 32 * (step + 1),
                               .loss = loss,
                               .lr = 0.1,
                               .samples_per_second = step == 0 ? 1 : rate,
                               .gradient_norm = 0});  // the first warms up
  made.run->evals.push_back({.step = 2, .values = {{"accuracy", 0.9}}});
  made.run->times = {{0, {.steps = 1, .ranks = {{9, 9, 9, 9, 9}}}}, {2, {.steps = 2, .ranks = {{1, 2, 4, 2, 1}}}}};
  return made;
}

}  // namespace

TEST_CASE("the table has throughput and efficiency and the time split and the metrics of each trial") {
  const std::vector<Trial> trials{trial(1, 32), trial(4, 8), trial(4, 32), trial(2, 32)};
  TrialOutcome failed{
      .state = TrialOutcome::State::failed, .problem = "exit code 1: \"no, such\" file | disk\nfull", .run = {}};
  const SweepResults results =
      sweep_results(trials, {outcome(1000, 0.5), outcome(1600, 0.5625), outcome(3400, 0.5), failed});
  const nlohmann::json json = nlohmann::json::parse(results_json(results));
  CHECK(json["trials"][0]["samples_per_second"].get<double>() == doctest::Approx(1000));
  CHECK(json["trials"][1]["strong_efficiency"].get<double>() == doctest::Approx(0.40));  // 1.6x on 4
  CHECK(json["trials"][1]["weak_efficiency"].is_null());
  CHECK(json["trials"][2]["weak_speedup"].get<double>() == doctest::Approx(3.4));
  CHECK(json["trials"][2]["weak_efficiency"].get<double>() == doctest::Approx(0.85));  // 3.4x on 4
  CHECK(json["trials"][2]["backward"].get<double>() == doctest::Approx(0.4));
  CHECK(json["trials"][2]["val_accuracy"] == 0.9);
  CHECK(json["trials"][3]["samples_per_second"].is_null());
  CHECK(json["trials"][3]["state"] == "failed");
  CHECK(results.failed == std::vector<bool>{false, false, false, true});
  REQUIRE(json["notes"].size() == 1);
  CHECK(json["notes"][0].get<std::string>().find(
            "global batch 32: 2 trials, largest difference of the training loss 0.0625 at 32") == 0);

  const std::string csv = results_csv(results), markdown = results_markdown(results);
  CHECK(
      csv.starts_with("trial,state,world_size,batch_size,accumulate,global_batch,samples_per_second,strong_speedup,"));
  CHECK(csv.find("\"world_size=4,batch_size=8\",done,4,8,1,32,1600.0,1.6,0.4,,,") != std::string::npos);
  CHECK(csv.find("\"exit code 1: \"\"no, such\"\" file | disk\nfull\"\r\n") != std::string::npos);
  CHECK(markdown.find("| world_size=4,batch_size=32 | done | 4 | 32 | 1 | 128 | 3400 |  |  | 3.4 | 0.85 |") !=
        std::string::npos);
  CHECK(markdown.find("file \\| disk full |") != std::string::npos);
}

TEST_CASE("a sweep without a trial on one rank says that efficiency has nothing to compare with") {
  const SweepResults results = sweep_results({trial(2, 8)}, {outcome(10, 1)});
  REQUIRE(results.notes.size() == 1);
  CHECK(results.notes[0].find("no trial on one rank") == 0);
}

TEST_CASE("commands are words and are shown as one could type them") {
  Trial one = trial(2, 8);
  one.config = "base.yaml";
  one.overrides = {"run.dir=\"/tmp/it's here\""};
  const CommandWords local = local_command(one, "/bin/lockstep", true);
  CHECK(local.back() == "auto");
  CHECK(typed(local) ==
        "mpirun --oversubscribe --bind-to none -np 2 /bin/lockstep train base.yaml --set "
        "'run.dir=\"/tmp/it'\\''s here\"' --resume auto");
  const CommandWords batch =
      batch_command(one, {.time_limit = 61, .more = {"--partition=fast"}}, "trial.sbatch", "/bin/lockstep", false);
  const auto has = [&](const std::string& word) { return std::ranges::find(batch, word) != batch.end(); };
  CHECK(has("--ntasks=2"));
  CHECK(has("--output=/tmp/50%%/world_size=2,batch_size=8/launch.log"));
  CHECK(has("--partition=fast"));
  CHECK(has("--time=2"));
  CHECK(has("--wait"));
}

TEST_CASE("trials on their way are no failures and show what they have so far") {
  TrialOutcome running = outcome(1000, 0.5), queued;
  running.state = TrialOutcome::State::running;
  queued.state = TrialOutcome::State::queued;
  queued.problem = "Slurm job 7_1 is PENDING";
  const SweepResults results = sweep_results({trial(1, 32), trial(1, 16), trial(1, 8)}, {running, queued, {}});
  CHECK(results.failed == std::vector<bool>{false, false, true});
  const std::string csv = results_csv(results);
  CHECK(csv.find("running,1,32,1,32,1000.0,") != std::string::npos);
  CHECK(csv.find("queued,1,16,1,16,,") != std::string::npos);
  CHECK(csv.find("Slurm job 7_1 is PENDING") != std::string::npos);
}

// lockstep sweep and lockstep report with the real program: trials under mpirun, one that fails, what is missing run
// again, the tables, and the commands of docs/sweeps.md.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/browser.h"
#include "support/child.h"
#include "support/run_folder.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kBase = R"(
model: {layers: [{linear: 8}, relu, {linear: 3}]}
data:
  train: {kind: synthetic, name: teacher, samples: 192, shape: [5], classes: 3}
  val: {kind: synthetic, name: teacher, samples: 30, shape: [5], classes: 3}
train: {epochs: 2, batch_size: 8}
optimizer: {kind: sgd, lr: 0.05}
log: {every: 1}
)";

// A project: its root holds configs/, so that paths start there.
class SweepFolder {
 public:
  explicit SweepFolder(const std::string& sweep) : folder_(kBase) {
    fs::create_directories(folder_ / "configs");
    fs::rename(folder_ / "run.yaml", folder_ / "configs/base.yaml");
    write(sweep);
  }
  void write(const std::string& sweep) const {
    std::ofstream(folder_ / "sweep.yaml") << "config: configs/base.yaml\ndir: runs/s\n" << sweep;
  }
  Outcome sweep(std::vector<std::string> options = {}) const {
    std::vector<std::string> command{LOCKSTEP_BINARY, "sweep", (folder_ / "sweep.yaml").string()};
    command.insert(command.end(), options.begin(), options.end());
    return as_root(command);
  }
  nlohmann::json results() const {
    nlohmann::json results = nlohmann::json::parse(bytes_of(folder_ / "runs/s/results.json"));
    for (const nlohmann::json& trial : results["trials"]) results[trial["trial"].get<std::string>()] = trial;
    return results;
  }
  fs::path operator/(const std::string& name) const { return folder_ / name; }
  // mpirun asks for this where the user is root.
  static Outcome as_root(std::vector<std::string> command, double limit = 200) {
    command.insert(command.begin(), {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
    return run_process(command, limit);
  }

 private:
  RunFolder folder_;
};

}  // namespace

TEST_CASE("a sweep trains every trial and compares equal global batches and writes its tables") {
  const SweepFolder folder(
      "list: [{world_size: 1, batch_size: 8}, {world_size: 2, batch_size: 4}, {world_size: 1, batch_size: 4, "
      "accumulate: 2}]\n");
  const Outcome swept = folder.sweep();
  CAPTURE(swept.output);
  REQUIRE(swept.exit_code == 0);
  const nlohmann::json results = folder.results();
  REQUIRE(results["trials"].size() == 3);
  for (const nlohmann::json& trial : results["trials"]) {
    CAPTURE(trial.dump());
    CHECK(trial["state"] == "done");
    CHECK(trial["global_batch"] == 8);
    CHECK(trial["samples_per_second"] > 0);
    CHECK(trial["val_accuracy"] > 0);
    double shares = 0;
    for (const char* phase : {"data", "forward", "backward", "communication", "optimizer"}) {
      CHECK(trial[phase] > 0);
      shares += trial[phase].get<double>();
    }
    CHECK(shares == doctest::Approx(1));
  }
  const nlohmann::json two = results["world_size=2,batch_size=4"];
  const auto rate = [&](const char* trial) { return results[trial]["samples_per_second"].get<double>(); };
  const double fastest = std::max(rate("world_size=1,batch_size=8"), rate("world_size=1,batch_size=4,accumulate=2"));
  CHECK(two["strong_speedup"].get<double>() == doctest::Approx(rate("world_size=2,batch_size=4") / fastest));
  CHECK(two["strong_efficiency"].get<double>() == doctest::Approx(two["strong_speedup"].get<double>() / 2));
  CHECK(two["weak_efficiency"].is_null());
  REQUIRE(results["notes"].size() == 1);
  const std::string note = results["notes"][0];
  CHECK(note.find("global batch 8: 3 trials, largest difference of the training loss ") == 0);
  CHECK(note.find("; 48 points)") != std::string::npos);
  CHECK(std::stod(note.substr(note.find("loss ") + 5)) < 1e-5);
  CHECK(swept.says(note));
  CHECK(bytes_of(folder / "runs/s/results.csv").find("\"world_size=2,batch_size=4\",done,2,4,1,8,") !=
        std::string::npos);
  CHECK(bytes_of(folder / "runs/s/results.md").find("| world_size=2,batch_size=4 | done | 2 | 4 | 1 | 8 |") !=
        std::string::npos);
  CHECK(bytes_of(folder / "runs/s/report.html").find("largest difference of the training loss") != std::string::npos);
  const std::string config = bytes_of(folder / "runs/s/world_size=2,batch_size=4/config.yaml");
  CHECK(config.find("world_size: 2") != std::string::npos);
}

TEST_CASE("a failed trial is shown and the others are trained and resume runs what is missing only") {
  const SweepFolder folder("grid: {optimizer.lr: [0.05, 1e30, 0.1]}\n");
  const Outcome swept = folder.sweep();
  CAPTURE(swept.output);
  CHECK(swept.exit_code == 1);
  CHECK(swept.says("lr=1e30: failed: exit code 1: lockstep: "));
  CHECK(swept.says("1 of 3 trials are not done"));
  nlohmann::json results = folder.results();
  CHECK(results["lr=1e30"]["state"] == "failed");
  CHECK(results["lr=1e30"]["problem"].get<std::string>().find("not finite") != std::string::npos);
  CHECK(results["lr=0.1"]["state"] == "done");

  const Outcome again = folder.sweep();
  CHECK(again.exit_code == 2);
  CHECK(again.says("is there already; with --resume, what is missing in it is run"));

  fs::remove_all(folder / "runs/s/lr=0.1");
  const std::string kept = bytes_of(folder / "runs/s/lr=0.05/metrics.jsonl");
  const Outcome resumed = folder.sweep({"--resume"});
  CAPTURE(resumed.output);
  CHECK(resumed.exit_code == 1);
  CHECK(resumed.says("3 trials, 2 to run"));
  CHECK(bytes_of(folder / "runs/s/lr=0.05/metrics.jsonl") == kept);
  CHECK(folder.results()["lr=0.1"]["state"] == "done");

  folder.write("set: {train.epochs: 1}\ngrid: {optimizer.lr: [0.05, 0.1]}\n");
  const Outcome other = folder.sweep({"--resume"});
  CHECK(other.exit_code == 2);
  CHECK(other.says("holds a run of another config than trial lr=0.05 has now"));
}

TEST_CASE("a dry run prints trials and commands and leaves nothing behind") {
  const SweepFolder folder("grid: {world_size: [1, 2], lr: [0.1]}\n");
  const Outcome dry = folder.sweep({"--dry-run"});
  CAPTURE(dry.output);
  CHECK(dry.exit_code == 0);
  CHECK(dry.says("mpirun --oversubscribe --bind-to none -np 2 " LOCKSTEP_BINARY " train "));
  CHECK(dry.says("--set distributed.world_size=2 --set optimizer.lr=0.1 --set device.threads="));
  CHECK_FALSE(fs::exists(folder / "runs"));
  const Outcome submit = folder.sweep({"--dry-run", "--submit"});
  CHECK(submit.says("sbatch --wait --parsable --job-name=world_size=2,lr=0.1 --ntasks=2 --cpus-per-task=1 "));
  folder.write("grid: {world_size: [1, 2], lr: [0.1, 0.2]}\n");
  const Outcome array = folder.sweep({"--dry-run", "--submit", "--array", "--jobs", "3", "--no-wait"});
  CAPTURE(array.output);
  CHECK(array.count("sbatch --array=0-1%3 --parsable --job-name=s --ntasks=") == 2);
  CHECK(array.says("     1  world_size=2,lr=0.2\n"));
  CHECK_FALSE(fs::exists(folder / "runs"));
  CHECK(folder.sweep({"--array"}).exit_code != 0);
  const Outcome none = folder.sweep({"--report"});
  CHECK(none.exit_code == 2);
  CHECK(none.says("runs/s: is not there: expected the folder of a sweep that has been started"));
}

TEST_CASE("a sweep's report shows trials that are done and running with their curves and queued ones") {
  const SweepFolder folder(
      "jobs: 1\nset: {log.every: 1000, eval.every: never}\nlist: [{train.epochs: 1}, {train.epochs: 10000000}, {seed: "
      "1}]\n");
  const std::string file = folder / "sweep.yaml", output = folder / "out";
  const pid_t child = start_child([&] {  // becomes the sweep, so that the signal is its own
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    if (std::freopen(output.c_str(), "w", stdout) != nullptr)
      execl(LOCKSTEP_BINARY, LOCKSTEP_BINARY, "sweep", file.c_str(), nullptr);
  });
  // Until it trains and has told a loss.
  Outcome report;
  bool trains = false;
  for (int tries = 0; tries < 150 && !trains; ++tries) {
    usleep(200'000);
    report = folder.sweep({"--report"});
    trains = report.says(" 1 running") && folder.results()["epochs=10000000"]["train_loss"].is_number();
  }
  CAPTURE(report.output);
  CHECK(report.exit_code == 0);
  CHECK(report.says("1 trials done, 1 running, 1 queued"));
  const nlohmann::json results = folder.results();
  CHECK(results["epochs=1"]["state"] == "done");
  CHECK(results["epochs=10000000"]["state"] == "running");
  CHECK(results["epochs=10000000"]["train_loss"] > 0);
  CHECK(results["seed=1"]["state"] == "queued");
  CHECK(bytes_of(folder / "runs/s/report.html").find("\"label\":\"epochs=10000000\"") != std::string::npos);
  kill(child, SIGTERM);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  const Outcome after = folder.sweep({"--report"});
  CAPTURE(after.output);
  CHECK(after.exit_code == 1);
  CHECK(after.says("2 of 3 trials are not done; --resume runs them"));
}

TEST_CASE("trials side by side have CPUs of their own") {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const SweepFolder folder("threads: 1\ngrid: {seed: [1, 2, 3, 4]}\n");
  const Outcome swept = folder.sweep({"--jobs", "2"});
  CAPTURE(swept.output);
  CHECK(swept.exit_code == 0);
  if (cores < 2) {
    MESSAGE("SKIPPED: one core");
    return;
  }
  // Between a trial's line of start and that of its end no other starts on its CPU.
  std::istringstream lines(swept.output);
  std::map<std::string, std::string> on;  // CPU by trial
  size_t most = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t name = line.find("seed=");
    if (!line.starts_with("lockstep sweep: seed=")) continue;
    const std::string trial = line.substr(name, 6);
    if (line.find(": done") != std::string::npos) on.erase(trial);
    const size_t cpu = line.find(" on CPU ");
    if (cpu == std::string::npos) continue;
    for (const auto& [other, taken] : on) CHECK(taken != line.substr(cpu));
    on[trial] = line.substr(cpu);
    most = std::max(most, on.size());
  }
  CHECK(most == 2);
  const nlohmann::json start =
      nlohmann::json::parse(bytes_of(folder / "runs/s/seed=1/metrics.jsonl")
                                .substr(0, bytes_of(folder / "runs/s/seed=1/metrics.jsonl").find('\n')));
  CHECK(start["environment"]["cores"] == "1");
}

TEST_CASE("a trial that takes too long is ended and shown") {
  const SweepFolder folder(
      "time_limit: 4\nset: {log.every: 100000, eval.every: never}\ngrid: {train.epochs: [1, 10000000]}\n");
  const Outcome swept = folder.sweep();
  CAPTURE(swept.output);
  CHECK(swept.exit_code == 1);
  CHECK(folder.results()["epochs=1"]["state"] == "done");
  CHECK(folder.results()["epochs=10000000"]["problem"].get<std::string>().find("ended at time_limit") == 0);
}

TEST_CASE("a sweep that is asked to stop ends its trials and says what is missing") {
  const SweepFolder folder("set: {log.every: 100000, eval.every: never}\ngrid: {train.epochs: [10000000, 1]}\n");
  Outcome swept;
  const pid_t child = start_child([&] {
    const Outcome outcome = SweepFolder::as_root(
        {"timeout", "--signal=TERM", "8", LOCKSTEP_BINARY, "sweep", (folder / "sweep.yaml").string()}, 100);
    std::ofstream(folder / "out") << outcome.output;
  });
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  const std::string output = bytes_of(folder / "out");
  CAPTURE(output);
  CHECK(output.find("epochs=10000000: stopped: the sweep was asked to stop") != std::string::npos);
  CHECK(output.find("2 of 2 trials are not done") != std::string::npos);
  CHECK(output.find("epochs=1: started") == std::string::npos);
}

TEST_CASE("a slow rank shows where it is slow and where the others wait for it") {
  const RunFolder folder(kBase);
  const Outcome run = folder.train("run", 2, {"--set", "train.max_steps=6"}, {"LOCKSTEP_FAULT=1,forward:4,sleep:1"});
  CAPTURE(run.output);
  REQUIRE(run.exit_code == 0);
  std::istringstream log(bytes_of(folder / "run/metrics.jsonl"));
  for (std::string line; std::getline(log, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    if (event["event"] != "time") continue;
    CAPTURE(line);
    CHECK(event["steps"] == 1);  // log.every: 1
    if (event["step"] != 4) continue;
    CHECK(event["forward"][1] > 0.9);
    CHECK(event["forward"][0] < 0.9);
    CHECK(event["communication"][0] > 0.8);
    CHECK(event["communication"][1] < 0.8);
  }
}

TEST_CASE("report makes a page of runs and pictures for terminals") {
  const SweepFolder folder("grid: {world_size: [1, 2]}\nset: {train.clip_norm: 1.0}\n");
  REQUIRE(folder.sweep().exit_code == 0);
  const std::string one = folder / "runs/s/world_size=1", two = folder / "runs/s/world_size=2",
                    page = folder / "page.html";
  const Outcome made = run_process({LOCKSTEP_BINARY, "report", one, two, "-o", page}, 60);
  CAPTURE(made.output);
  REQUIRE(made.exit_code == 0);
  const Outcome pictures = run_process({LOCKSTEP_BINARY, "report", one, two, "--png", (folder / "png").string()}, 100);
  CAPTURE(pictures.output);
  REQUIRE(pictures.exit_code == 0);
  for (const char* name : {"training_loss", "gradient_norm", "validation_accuracy", "samples_per_second", "time_1"})
    CHECK(bytes_of(folder / ("png/" + std::string(name) + ".png")).starts_with("\x89PNG"));
  CHECK(run_process({LOCKSTEP_BINARY, "report", "/nowhere"}, 20).exit_code == 2);

  const std::string browser = browser_or_skip();
  if (browser.empty()) return;
  const PageAnswer seen = ask_page(browser, bytes_of(page), R"(
    return {plan: document.getElementById('plan-text').textContent, charts: charts.length,
      differing: [...document.querySelectorAll('#settings tbody tr')].map(row => [...row.cells].map(cell => cell.textContent)),
      environment: document.querySelector('#environment table').textContent, loss: charts[0].data.datasets.map(one => one.data.length),
      ranks: document.querySelectorAll('#time-run option').length};
  )");
  CAPTURE(seen.answer.dump());
  CHECK(seen.console.empty());
  CHECK(seen.answer["charts"] == 9);
  CHECK(seen.answer["loss"] == nlohmann::json({48, 24}));
  CHECK(seen.answer["ranks"] == 2);
  CHECK(seen.answer["differing"] == nlohmann::json({{"distributed.world_size", "1", "2"}}));
  CHECK(seen.answer["environment"].get<std::string>().find("communicator") != std::string::npos);
  const Outcome plan =
      run_process({LOCKSTEP_BINARY, "plan", (folder / "configs/base.yaml").string(), "--world-size", "1"}, 60);
  CHECK(seen.answer["plan"] == plan.output);
}

TEST_CASE("the commands of docs/sweeps.md run as they stand there") {
  if (!fs::exists(LOCKSTEP_SOURCE_DIR "/datasets/mnist/train-images-idx3-ubyte.gz")) {
    MESSAGE("SKIPPED: MNIST is not there");
    return;
  }
  const RunFolder folder(kBase);
  for (const char* name : {"configs", "datasets"})
    fs::create_directory_symlink(fs::path(LOCKSTEP_SOURCE_DIR) / name, folder / name);
  fs::create_directories(folder / "bin");
  fs::create_symlink(LOCKSTEP_BINARY, folder / "bin/lockstep");
  std::ifstream page(LOCKSTEP_SOURCE_DIR "/docs/sweeps.md");
  int commands = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("$ lockstep ")) continue;
    CAPTURE(line);
    std::istringstream words(line.substr(std::string("$ lockstep ").size()));
    std::vector<std::string> command{"env", "-C", folder / "",
                                     "PATH=" + (folder / "bin").string() + ":" + std::getenv("PATH"), "lockstep"};
    for (std::string word; words >> word;) command.push_back(word);
    const Outcome outcome = SweepFolder::as_root(command, 300);
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 0);
    ++commands;
  }
  CHECK(commands >= 5);
  CHECK(fs::exists(folder / "report.html"));
}

// Uneven and degenerate data with the real program: who reads which rows, what is divided by what, and what happens
// where ranks run out of data. The numbers are those of reports against other trainers; every run has a time limit.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "support/training_run.h"

using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

constexpr double kLimit = 60;

// `samples` rows whose number is their content, batch 1.
TrainingRun rows_of(int samples, int ranks, const std::vector<std::string>& overrides = {}) {
  const std::string yaml = fmt::format(
      "model: {{layers: [{{linear: 1}}]}}\n"
      "data: {{train: {{kind: synthetic, name: constant, samples: {}, values: [1, 2, 3]}}}}\n"
      "train: {{loss: mse, batch_size: 1}}\n"
      "optimizer: {{kind: sgd, lr: 0.01}}\n"
      "log: {{every: 1, per_rank: true, indices: true}}\n",
      samples);
  TrainingRun run = train_text(yaml, ranks, overrides, kLimit);
  CAPTURE(run.outcome.output);
  REQUIRE_FALSE(run.outcome.timed_out);
  REQUIRE(run.outcome.exit_code == 0);
  return run;
}

// Every row a rank read in the whole run, in order.
std::vector<int64_t> read_by(const TrainingRun& run, size_t rank) {
  std::vector<int64_t> rows;
  for (const auto& step : run.of("step"))
    if (step["rank_indices"].size() > rank)
      for (const auto& micro_step : step["rank_indices"][rank])
        for (const auto& row : micro_step) rows.push_back(row);
  return rows;
}

std::vector<int64_t> read_by_all(const TrainingRun& run, size_t ranks) {
  std::vector<int64_t> rows;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto mine = read_by(run, rank);
    rows.insert(rows.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(rows);
  return rows;
}

std::vector<int64_t> first_numbers(int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

// Files that the ranks have for themselves: rows "x,y".
struct Parts {
  fs::path directory = fs::temp_directory_path() / fmt::format("lockstep-parts-{}", getpid());
  explicit Parts(const std::vector<int>& sizes) {
    fs::create_directories(directory);
    for (size_t r = 0; r < sizes.size(); ++r) {
      std::ofstream file(directory / fmt::format("part-{}.csv", r));
      for (int row = 0; row < sizes[r]; ++row) file << 0.1 * row << "," << 0.2 * row - static_cast<double>(r) << "\n";
    }
  }
  ~Parts() { fs::remove_all(directory); }
  std::string yaml() const {
    const std::string files = (directory / "part-{rank}.csv").string();
    return "model: {layers: [{linear: 4}, tanh, {linear: 1}]}\n"
           "data:\n  train: {kind: csv, file: \"" +
           files + "\"}\n  val: {kind: csv, file: \"" + files +
           "\"}\n"
           "train: {epochs: 2, batch_size: 2, loss: mse, replica_check: 1}\n"
           "optimizer: {kind: adam, lr: 0.01}\n"
           "log: {every: 1, per_rank: true}\n";
  }
};

std::vector<int> samples_of_steps(const TrainingRun& run) {
  std::vector<int> samples;
  for (const auto& step : run.of("step")) samples.push_back(step["samples"]);
  return samples;
}

}  // namespace

TEST_CASE("ten rows on four ranks: three three two two and each once") {
  const TrainingRun run = rows_of(10, 4);
  CHECK(read_by_all(run, 4) == first_numbers(10));
  CHECK(read_by(run, 1).size() == 3);
  CHECK(read_by(run, 2).size() == 2);
  CHECK(samples_of_steps(run) == std::vector<int>{4, 4, 2});
}

TEST_CASE("nine rows on eight ranks: the second step has a row on one rank only") {
  const TrainingRun run = rows_of(9, 8, {"train.replica_check=1"});
  CHECK(read_by_all(run, 8) == first_numbers(9));
  CHECK(samples_of_steps(run) == std::vector<int>{8, 1});
}

TEST_CASE("one row on any number of ranks") {
  for (const int ranks : {1, 3, 8}) {
    CAPTURE(ranks);
    const TrainingRun run = rows_of(1, ranks, {"train.epochs=3", "train.replica_check=1", "train.accumulate=2"});
    CHECK(samples_of_steps(run) == std::vector<int>{1, 1, 1});
  }
}

TEST_CASE("every epoch has another order and every rank knows it") {
  std::vector<std::vector<int64_t>> first_epoch;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const TrainingRun run = rows_of(22, 2, {"train.epochs=3"});
    std::vector<std::vector<int64_t>> by_rank;
    for (size_t rank = 0; rank < 2; ++rank) by_rank.push_back(read_by(run, rank));
    std::set<std::vector<int64_t>> orders;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> all;
      for (const auto& rows : by_rank)
        all.insert(all.end(), rows.begin() + epoch * 11, rows.begin() + (epoch + 1) * 11);
      orders.insert(all);
      std::ranges::sort(all);
      CHECK(all == first_numbers(22));
    }
    CHECK(orders.size() == 3);
    if (repeat == 0) first_epoch = by_rank;
    CHECK(by_rank == first_epoch);  // the same seed: the same run
  }
}

TEST_CASE("padding repeats rows from the head of the list and never crashes") {
  for (const auto& [samples, ranks] : {std::pair{1, 4}, {3, 4}, {7, 2}}) {
    CAPTURE(samples);
    const TrainingRun run = rows_of(samples, ranks, {"sampler.uneven=pad"});
    const auto rows = read_by_all(run, static_cast<size_t>(ranks));
    CHECK(std::ssize(rows) == (samples + ranks - 1) / ranks * ranks);
    CHECK(std::set(rows.begin(), rows.end()).size() == static_cast<size_t>(samples));  // each at least once
  }
}

TEST_CASE("the norm is clipped once a window: twenty-five and not ten") {
  // l1 with a target far below: the gradient is x itself. Micro-gradients (30, 40) and (0, 0), their mean (15, 20).
  const fs::path table = fs::temp_directory_path() / fmt::format("lockstep-clip-{}.csv", getpid());
  std::ofstream(table) << "30,40,-1e9\n0,0,-1e9\n";
  for (const auto& [ranks, accumulate] : {std::pair{1, 2}, {2, 1}, {2, 2}, {1, 1}}) {
    CAPTURE(ranks);
    const int batch = ranks * accumulate == 1 ? 2 : 1;
    const TrainingRun run =
        train_text(fmt::format("model: {{layers: [{{linear: {{out: 1, bias: false}}}}]}}\n"
                               "data: {{train: {{kind: csv, file: {}}}}}\n"
                               "sampler: {{shuffle: false}}\n"
                               "train: {{loss: l1, batch_size: {}, accumulate: {}, clip_norm: 5}}\n"
                               "optimizer: {{kind: sgd, lr: 1}}\n"
                               "log: {{every: 1, watch: [\"value:0.weight[0,0]\", \"value:0.weight[0,1]\"]}}\n",
                               table.string(), batch, accumulate),
                   ranks, {}, kLimit);
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    REQUIRE(run.of("step").size() == 1);
    CHECK(run.of("step")[0]["gradient_norm"] == doctest::Approx(25).epsilon(1e-6));
    const double expected[] = {3, 4};
    for (const int k : {0, 1}) {
      const std::string probe = fmt::format("value:0.weight[0,{}]", k);
      const auto before = run.probe(probe, "after broadcast"), after = run.probe(probe, "step");
      for (size_t rank = 0; rank < before.size(); ++rank)
        CHECK(before[rank] - after[rank] == doctest::Approx(expected[k]).epsilon(1e-6));
    }
  }
  fs::remove(table);
}

TEST_CASE("the schedule counts optimizer steps and neither micro-steps nor ranks") {
  for (const auto& [samples, ranks] : {std::pair{100, 1}, {200, 2}}) {
    CAPTURE(ranks);
    const TrainingRun run = rows_of(samples, ranks,
                                    {"train.batch_size=5", "train.accumulate=4", "optimizer.lr=1",
                                     "schedule={kind: none, warmup: 5}", "train.on_nonfinite=ignore"});
    std::vector<double> rates;
    for (const auto& step : run.of("step")) rates.push_back(step["lr"]);
    REQUIRE(rates.size() == 5);
    for (size_t k = 0; k < 5; ++k) CHECK(rates[k] == doctest::Approx(0.2 * static_cast<double>(k + 1)).epsilon(1e-12));
  }
}

TEST_CASE("join: ranks that run out take part until all are through") {
  const Parts parts({9, 3, 5});
  const TrainingRun run = train_text(parts.yaml(), 3, {}, kLimit);
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(samples_of_steps(run) == std::vector<int>{6, 5, 3, 2, 1, 6, 5, 3, 2, 1});
  CHECK(run.of("eval").back()["count"] == 17);
  CHECK(run.of("eval").back()["shards"] == std::vector<int>{9, 3, 5});
}

TEST_CASE("stop: the epoch ends for all with the last step that every rank has rows for") {
  const Parts parts({9, 3, 5});
  const TrainingRun run = train_text(parts.yaml(), 3, {"sampler.early_end=stop"}, kLimit);
  CAPTURE(run.outcome.output);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(samples_of_steps(run) == std::vector<int>{6, 5, 6, 5});
  CHECK(run.of("eval").back()["count"] == 17);
}

TEST_CASE("error: all ranks end politely before the first step and the rank is named") {
  const Parts parts({9, 3, 5});
  const TrainingRun run = train_text(parts.yaml(), 3, {"sampler.early_end=error"}, kLimit);
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 2);
  CHECK(run.outcome.count("rank 1 exhausts all its inputs after 2 of 5 micro-steps") == 1);
  CHECK_FALSE(run.outcome.says("MPI_ABORT"));
  CHECK(run.of("step").empty());
}

TEST_CASE("a file that one rank lacks ends all ranks and is named") {
  const Parts parts({4, 4});
  const TrainingRun run = train_text(parts.yaml(), 3, {}, kLimit);
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 2);
  CHECK(run.outcome.says("rank 2: "));
  CHECK(run.outcome.says("part-2.csv"));
}

TEST_CASE("plan counts own data of every rank") {
  const Parts parts({9, 3});
  const fs::path file = parts.directory / "plan.yaml";
  std::ofstream(file) << parts.yaml();
  const Outcome outcome = run_process({LOCKSTEP_BINARY, "plan", file.string(), "--world-size", "2"}, kLimit);
  CAPTURE(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.says("         2               3-9        0        0                5"));
  CHECK(outcome.says("rank 1: 2 0 1\n"));
}

// The text of `lockstep plan` for the articles' examples.
#include "train/plan_report.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.h"

using namespace lockstep;

namespace {

// The table's line of a world size, as its columns.
std::vector<std::string> columns(const std::string& report, const std::string& world_size) {
  size_t at = 0;
  while (at < report.size()) {
    const size_t end = report.find('\n', at);
    std::vector<std::string> words;
    std::string word;
    for (const char c : report.substr(at, end - at) + " ") {
      if (c != ' ') {
        word += c;
      } else if (!word.empty()) {
        words.push_back(word);
        word.clear();
      }
    }
    if (!words.empty() && words.front() == world_size) return words;
    at = end + 1;
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("plan of 16 samples on 1 and 4 ranks") {
  const std::vector<int64_t> world_sizes = {1, 4};
  const std::string report = plan_report({.samples = 16, .batch_size = 2, .epochs = 3}, world_sizes, {});
  INFO(report);
  using Columns = std::vector<std::string>;
  // world_size, samples per rank, padding, dropped, steps per epoch, global batch, last step samples, optimizer steps
  CHECK_EQ(columns(report, "1"), Columns{"1", "16", "0", "0", "8", "2", "2", "24"});
  CHECK_EQ(columns(report, "4"), Columns{"4", "4", "0", "0", "2", "8", "8", "6"});
  CHECK(contains(report, "world_size 4: global batch = batch_size 2 x world_size 4 x accumulate 1 = 8\n"));
  CHECK(contains(report,
                 "  epoch 0, first samples\n    rank 0: 12 11 2 4\n    rank 1: 10 8 14 3\n    rank 2: 9 13 15 7\n"));
  CHECK(contains(report, "  epoch 1, first samples\n    rank 0: 5 11 1 10\n"));
  CHECK(contains(report, "  epoch 2, first samples\n    rank 0: 8 6 4 15\n"));
  CHECK(contains(report, "    rank 0: 12 10 9 6 11 8 13 5 ...\n"));
  CHECK_FALSE(contains(report, "WARNING"));
}

TEST_CASE("without shuffle rank 1 of 4 reads positions 1 5 9 13") {
  const std::vector<int64_t> world_sizes = {4};
  const std::string report = plan_report({.samples = 16, .batch_size = 2}, world_sizes, {.shuffle = false});
  CHECK(contains(report, "    rank 1: 1 5 9 13\n"));
  CHECK_FALSE(contains(report, "epoch 1"));
}

TEST_CASE("plan warns where every loader is empty and only there") {
  const std::vector<int64_t> world_sizes = {1, 8};
  const DataPlanSpec spec{.samples = 5, .batch_size = 2, .uneven = Uneven::pad, .drop_last = true};
  const std::string report = plan_report(spec, world_sizes, {});
  INFO(report);
  CHECK(contains(report,
                 "WARNING world_size 8: every loader is empty: 5 samples, 8 ranks, batch 2, drop_last: nothing to "
                 "train; lower train.batch_size, "
                 "start fewer ranks, or keep the last batch (sampler.drop_last: false)\n"));
  CHECK_FALSE(contains(report, "WARNING world_size 1:"));
  using Columns = std::vector<std::string>;
  CHECK_EQ(columns(report, "1"), Columns{"1", "5", "0", "1", "2", "2", "2", "2"});
  CHECK_EQ(columns(report, "8"), Columns{"8", "1", "3", "5", "0", "16", "0", "0"});
  CHECK(contains(report, "rank 0: 4 0 1 3\n"));  // the fifth sample is dropped
}

TEST_CASE("plan warns of ranks without samples in exact mode") {
  const std::vector<int64_t> world_sizes = {8};
  const std::string report = plan_report({.samples = 5, .batch_size = 2}, world_sizes, {});
  INFO(report);
  CHECK(contains(report, "WARNING world_size 8: 3 ranks have no samples: 5 samples, 8 ranks, batch 2: "));
  CHECK(contains(report, "    rank 4: 2\n    rank 5: none\n"));
  CHECK_EQ(columns(report, "8")[1], "0-1");
}

TEST_CASE("plan shows padding as repeated samples") {
  const std::vector<int64_t> world_sizes = {4};
  const std::string report = plan_report({.samples = 3, .batch_size = 1, .uneven = Uneven::pad}, world_sizes, {});
  CHECK(contains(report, "    rank 0: 2\n    rank 1: 0\n    rank 2: 1\n    rank 3: 2\n"));
}

TEST_CASE("plan cuts long lists of ranks") {
  const std::vector<int64_t> world_sizes = {64};
  const std::string report = plan_report({.samples = 1000, .batch_size = 4}, world_sizes, {});
  CHECK(contains(report, "and 56 ranks more\n"));
  CHECK_FALSE(contains(report, "rank 8:"));
}

TEST_CASE("plan of an impossible geometry is an error") {
  const std::vector<int64_t> world_sizes = {0};
  CHECK_THROWS_AS(plan_report({.samples = 16}, world_sizes, {}), Error);
}

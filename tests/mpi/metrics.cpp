// ranks: 1 2 3 4
// links: train
// Validation metrics with the samples dealt to the ranks: the very bits that one rank with all samples gets.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "comm/factory.h"
#include "comm/serial_communicator.h"
#include "support/metric_runner.h"
#include "support/same_bits.h"
#include "train/metrics/exact_sum.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<std::string> kClassMetrics{"accuracy", "top_3", "top_5",     "precision",
                                             "recall",   "f1",    "confusion", "auroc"};
const std::vector<std::string> kRegressionMetrics{"mse", "mae", "r2"};

Samples share_of(const Samples& all, int rank, int ranks) {
  std::vector<int64_t> rows;
  for (int64_t row = rank; row < all.rows; row += ranks) rows.push_back(row);
  return pick(all, rows);
}

// `mine`: this rank's samples, together those of `all`.
void check_same(const std::vector<std::string>& names, const MetricContext& context, const Samples& all,
                const Samples& mine) {
  const MpiEnvironment env;
  SerialCommunicator alone;
  const auto expected = run_metrics(names, context, all, all.rows, alone);
  for (const char* kind : {"shm", "mpi"}) {
    CAPTURE(kind);
    const auto communicator = make_communicator(kind, env, 60, nullptr);
    const auto found = run_metrics(names, context, mine, 3, *communicator);
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      CAPTURE(found[i].name);
      CHECK(same_bits(found[i].numbers, expected[i].numbers));
    }
  }
}

}  // namespace

TEST_CASE("metrics of classes have the bits of one rank") {
  const MpiEnvironment env;
  for (const int64_t rows : {1, 2, 7, 8, 200}) {  // fewer samples than ranks too
    for (const bool skip : {false, true}) {
      CAPTURE(rows);
      const Samples all = make_samples(rows, 6, static_cast<unsigned>(rows), skip);
      check_same(kClassMetrics, classes_context(6), all, share_of(all, env.rank(), env.size()));
    }
  }
}

TEST_CASE("metrics of real values have the bits of one rank") {
  const MpiEnvironment env;
  for (const int64_t rows : {2, 7, 500}) {
    CAPTURE(rows);
    Samples all = make_samples(rows, 3, static_cast<unsigned>(rows));
    for (size_t i = 0; i < all.values.size(); ++i) all.values[i] *= i % 7 == 0 ? 1e6f : 1e-3f;
    check_same(kRegressionMetrics, regression_context(3), all, share_of(all, env.rank(), env.size()));
  }
}

TEST_CASE("AUROC where a rank holds one class only or nothing") {
  const MpiEnvironment env;
  Samples all{.rows = 8, .outputs = 2, .labels = {1, 1, 0, 0, 0, 1, 0, 0}};
  for (const float lead : {0.9f, 0.2f, 0.2f, 0.1f, 0.7f, 0.6f, 0.5f, 0.2f}) {
    all.scores.insert(all.scores.end(), {0.0f, lead});
    all.values.insert(all.values.end(), {0.0f, 0.0f});
  }
  for (const int64_t rows : {8, 7}) {
    CAPTURE(rows);
    std::vector<int64_t> kept, first_class_only, dealt, blocks;
    for (int64_t row = 0; row < rows; ++row) {
      kept.push_back(row);
      // All positives on rank 0, all negatives on the last rank: every rank has one class or nothing.
      const bool positive = all.labels[static_cast<size_t>(row)] == 1;
      if (env.rank() == (positive ? 0 : env.size() - 1)) first_class_only.push_back(row);
      if (row % env.size() == env.rank()) dealt.push_back(row);
      if (row * env.size() / rows == env.rank()) blocks.push_back(row);
    }
    const Samples whole = pick(all, kept);
    for (const auto& mine : {first_class_only, dealt, blocks})
      check_same({"auroc"}, classes_context(2), whole, pick(all, mine));
  }
}

TEST_CASE("an exact sum over the ranks loses nothing") {
  const MpiEnvironment env;
  for (const char* kind : {"shm", "mpi"}) {
    const auto communicator = make_communicator(kind, env, 60, nullptr);
    ExactSum sums[2];
    sums[0].add(1e300 * (env.rank() % 2 == 0 ? 1 : -1));
    sums[0].add(std::ldexp(1.0, -1000));
    sums[0].add(-1e300 * (env.rank() % 2 == 0 ? 1 : -1));
    if (env.rank() == env.size() - 1) sums[1].add(std::numeric_limits<double>::quiet_NaN());
    reduce(sums, *communicator);
    CHECK(sums[0].value() == std::ldexp(static_cast<double>(env.size()), -1000));
    CHECK(std::isnan(sums[1].value()));
  }
}

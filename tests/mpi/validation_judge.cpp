// ranks: 1 2 3 4
// links: train
// Early stopping and the best model where the ranks hold validation shards of opposite quality: what one rank sees gets
// better while what another sees gets worse, and still all decide as one rank with all the data would.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "comm/factory.h"
#include "comm/serial_communicator.h"
#include "train/translate.h"
#include "train/validation_judge.h"

using namespace lockstep;

namespace {

struct Point {
  float x;
  int64_t label;
};

// Even ranks hold small numbers of class 0, odd ones large numbers of class 1, and they overlap; no two ranks hold
// equally many.
std::vector<Point> shard_of(int rank) {
  std::vector<Point> points;
  for (int i = 0; i < 6 + rank; ++i) {
    const bool odd = rank % 2 == 1;
    points.push_back({static_cast<float>(odd ? 4 + i : i) + 0.5f, odd ? 1 : 0});
  }
  return points;
}

class Points final : public Dataset {
 public:
  explicit Points(std::vector<Point> points)
      : Dataset({.size = std::ssize(points), .sample_shape = {1}, .classes = 2, .per_rank = true}),
        points_(std::move(points)) {}

 protected:
  void gather(std::span<const int64_t> rows, int64_t offset, const Batch& out) const override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Point& point = points_[static_cast<size_t>(rows[i] + offset)];
      out.x[i] = point.x;
      out.labels[i] = point.label;
    }
  }

 private:
  std::vector<Point> points_;
};

struct Course {
  std::vector<double> values;  // of the watched metric
  std::vector<bool> best;
  int64_t stopped_at = -1;
  BestMetric chosen;
  std::vector<double> numbers() const {
    std::vector<double> all{static_cast<double>(stopped_at), chosen.value, static_cast<double>(chosen.step)};
    all.insert(all.end(), values.begin(), values.end());
    all.insert(all.end(), best.begin(), best.end());
    return all;
  }
};

// "Trains" by moving the threshold above which a point is of class 1: the scores of the classes are 0 and x - t.
Course run(const std::string& metric, std::vector<Point> points, Communicator& comm) {
  const Config config = parse_config(
      "model: {layers: [{linear: 2}]}\n"
      "data: {train: {kind: toy}, val: {kind: toy}}\n"
      "eval: {metrics: [accuracy, auroc]}\n"
      "train: {early_stopping: {patience: 2, metric: " +
          metric + "}}\n",
      "judge.yaml", {});
  const Points dataset(std::move(points));
  const auto backend = make_cpu_backend({.threads = 1});
  Network network(model_spec(config), dataset.sample_shape(), *backend, 4);
  network.lay_out([&](size_t bytes) { return comm.allocate(bytes); });
  Evaluator evaluator(dataset, network, *backend, comm, deal_virtual_ranks({}, comm.rank(), comm.size()),
                      loss_spec(config.train), 4, config.eval.metrics);
  ValidationJudge judge(config, evaluator.metrics(), comm);
  network.store().set_canonical(0, std::array{0.0f, 1.0f});
  Course course;
  for (int64_t step = 0; step < 12 && course.stopped_at < 0; ++step) {
    network.store().set_canonical(1, std::array{0.0f, -static_cast<float>(step)});
    const Metrics metrics = evaluator.run().value();
    course.values.push_back(metrics.number(metric.substr(4)).value());
    const Verdict verdict = judge.judge(metrics, step);
    course.best.push_back(verdict.best);
    if (verdict.stop) course.stopped_at = step;
  }
  course.chosen = judge.best();
  return course;
}

void check_one_decision(const std::string& metric, bool larger_is_better) {
  const MpiEnvironment env;
  SerialCommunicator alone;
  std::vector<Point> all;
  for (int rank = 0; rank < env.size(); ++rank) {
    for (const Point& point : shard_of(rank)) all.push_back(point);
  }
  const Course expected = run(metric, all, alone);
  const Course own = run(metric, shard_of(env.rank()), alone);
  for (const char* kind : {"shm", "mpi"}) {
    CAPTURE(kind);
    const auto comm = make_communicator(kind, env, 60, nullptr);
    const Course course = run(metric, shard_of(env.rank()), *comm);
    CHECK(course.numbers() == expected.numbers());
    // Every rank told the same, and its best one is the first best of the logged values.
    const std::vector<double> numbers = course.numbers();
    const auto theirs = comm->all_gather(std::as_bytes(std::span(numbers)));
    for (const auto& other : theirs) CHECK(std::ranges::equal(other, std::as_bytes(std::span(numbers))));
    const auto extreme =
        larger_is_better ? std::ranges::max_element(course.values) : std::ranges::min_element(course.values);
    CHECK_EQ(course.chosen.step, extreme - course.values.begin());
    CHECK_EQ(course.chosen.value, *extreme);
    if (env.size() == 1) continue;
    CHECK_EQ(course.stopped_at, course.chosen.step + 2);
    // What the test is about: left alone, rank 0 would go on where rank 1 has stopped long ago.
    double alone_at[2] = {env.rank() == 0 ? static_cast<double>(own.chosen.step) : 0,
                          env.rank() == 1 ? static_cast<double>(own.chosen.step) : 0};
    comm->all_reduce(alone_at, ReduceOp::sum);
    CHECK_EQ(alone_at[1], 0);
    CHECK_GE(alone_at[0], course.chosen.step);
    CHECK_GT(course.chosen.step, 2);
  }
}

}  // namespace

TEST_CASE("shards of opposite accuracy: one stop and one best model") { check_one_decision("val.accuracy", true); }
TEST_CASE("shards of opposite loss: one stop and one best model") { check_one_decision("val.loss", false); }

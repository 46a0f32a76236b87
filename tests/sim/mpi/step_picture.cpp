// ranks: 2
// links: train
// How a step flows through streams, recorded from a training of a small ConvNet with two buckets on two GPUs: what the
// trace says overlaps and waits is checked, and drawn into docs/step_streams.svg (LOCKSTEP_UPDATE_DOCS=1 rewrites it).
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "backend/cuda/context.h"
#include "sim/step_svg.h"
#include "sim/training.h"

using namespace lockstep;
using test::Arrow;
using test::Box;
using test::SharedFolder;
using test::StepLayout;

namespace {

const std::string kConvNet =
    "model: {layers: [{conv2d: {out: 8, kernel: 3, padding: 1}}, relu, {max_pool2d: 2}, {conv2d: {out: 16, kernel: "
    "3}}, "
    "relu, flatten, {linear: 20}, relu, {linear: 4}]}\n"
    "data: {train: {kind: synthetic, name: random, samples: 96, shape: [3, 8, 8], classes: 4, seed: 5}}\n"
    "train: {epochs: 1, batch_size: 4}\n"
    "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "distributed: {backend: nccl, first_bucket_mb: 0.005, bucket_mb: 1}\n"
    "device: {kind: cuda, threads: 1, cuda_graph: off}\n"  // a recorded step is asked for as a whole
    "log: {every: 1000}\n";
enum Row { host, compute, copies, sums };

struct Recorded {
  StepLayout layout;
  std::vector<double> steps;  // when the host began each, and the last one ended
};

// Five steps; the first ones of a run load and bind.
Recorded record(uint64_t seed) {
  const MpiEnvironment env;
  const SharedFolder folder(env);
  sim::reset({.seed = seed});
  const Config config = parse_config(kConvNet, "picture.yaml", {"run.dir=" + (folder / "run")});
  const Resources resources = claim_resources(config, env);
  RunLog log(folder / "run", env.rank() == 0);
  std::vector<uint64_t> begun;
  std::map<int, int> rows;
  std::vector<sim::Traced> trace;
  {
    Trainer trainer(config, *resources.backend, *resources.communicator, log);
    trainer.begin_epoch(0);
    for (int step = 0; step < 5; ++step) {
      begun.push_back(sim::asked_for());
      REQUIRE(trainer.train_step(step));
    }
    begun.push_back(sim::asked_for());
    resources.backend->synchronize();
    trace = sim::trace();
  }
  const auto number = [](const cuda::Stream& stream) {
    return static_cast<int>(reinterpret_cast<intptr_t>(stream.get()));
  };
  rows = {{number(resources.backend->gpu()->compute()), compute}, {number(resources.backend->gpu()->copies()), copies}};
  for (const sim::Traced& one : trace)
    if (one.operation.starts_with("all_reduce")) rows[one.stream] = sums;
  Recorded recorded{test::StepLayouter(rows).lay_out(trace), {}};
  for (const uint64_t asked : begun) recorded.steps.push_back(recorded.layout.asked_at.at(asked));
  CHECK(sim::last_misuse() == "");
  return recorded;
}

std::vector<Box> boxes(const Recorded& recorded, int step, const std::string& kind) {
  std::vector<Box> found;
  const auto at = static_cast<size_t>(step);
  for (const Box& box : recorded.layout.boxes)
    if (box.kind == kind && box.from >= recorded.steps[at] && box.from < recorded.steps[at + 1]) found.push_back(box);
  return found;
}

std::string picture(const Recorded& recorded) {
  constexpr size_t first = 2, last = 4;
  return test::step_svg(recorded.layout, {.rows = {"host", "compute", "copies", "sums"},
                                          .from = recorded.steps[first],
                                          .to = recorded.steps[last],
                                          .marks = {{recorded.steps[first], "train_step(k)"},
                                                    {recorded.steps[first + 1], "train_step(k + 1)"}}});
}

}  // namespace

TEST_CASE("a step's buckets are summed while backward goes on and the update waits for them") {
  const Recorded recorded = record(1);
  const std::vector<Box> sum = boxes(recorded, 3, "sum"), update = boxes(recorded, 3, "update");
  const std::vector<Box> backward = boxes(recorded, 3, "backward");
  REQUIRE(sum.size() == 2);
  REQUIRE_FALSE(update.empty());
  REQUIRE_FALSE(backward.empty());
  CHECK(sum[0].from < backward.back().from);
  CHECK(update[0].from >= sum[1].to);
  std::set<std::pair<int, int>> ways;
  for (const Arrow& arrow : recorded.layout.arrows) ways.insert({arrow.from_row, arrow.to_row});
  // A bucket is ready; sums are there; a batch is there, and its place is free; the host has the loss.
  for (const auto& way : std::set<std::pair<int, int>>{
           {compute, sums}, {sums, compute}, {copies, compute}, {compute, copies}, {compute, host}})
    CHECK(ways.contains(way));
}

TEST_CASE("the host waits once a step for the loss and the next batch travels meanwhile") {
  const Recorded recorded = record(1);
  const std::vector<Box> waits = boxes(recorded, 3, "waits"), copied = boxes(recorded, 3, "copy");
  CHECK(waits.size() <= 2);  // and for the last batch's copy, whose memory the loader wants back
  CHECK(std::ranges::any_of(copied, [](const Box& box) { return box.row == copies; }));
}

TEST_CASE("the picture of a step in the documentation is the recorded one") {
  const std::string made = picture(record(1));
  // The order in which the simulated GPU happens to run its streams is not in it.
  CHECK(picture(record(9)) == made);
  if (MpiEnvironment().rank() != 0) return;
  const std::string path = LOCKSTEP_SOURCE_DIR "/docs/step_streams.svg";
  if (std::getenv("LOCKSTEP_UPDATE_DOCS") != nullptr) std::ofstream(path) << made;
  std::ifstream file(path);
  std::stringstream there;
  there << file.rdbuf();
  const bool same = there.str() == made;
  CHECK_MESSAGE(same, "docs/step_streams.svg is out of date: run this test with LOCKSTEP_UPDATE_DOCS=1");
}

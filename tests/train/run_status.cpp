// Following a run by what it writes, and the line that shows how far one is.
#include "train/run_status.h"

#include <doctest/doctest.h>

#include <fstream>

#include "checkpoint_support.h"
#include "core/error.h"
#include "train/progress.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a follower reads whole lines as they come and starts again with a new run") {
  const TempDir dir;
  RunFollower run(dir.path());
  run.update();
  CHECK(run.status().state == "waiting");
  std::ofstream file(dir.path() + "/metrics.jsonl");
  file << R"({"event":"start","world_size":2,"total_steps":400})"
       << "\n"
       << R"({"event":"step","step":49,"epoch":1,)";
  file.flush();
  run.update();
  CHECK(run.status().state == "running");
  CHECK(run.status().step == 0);
  file << R"("loss":0.5,"lr":0.1,"samples":8,"samples_per_second":80})"
       << "\n";
  file << R"({"event":"eval","step":49,"epoch":1,"loss":0.25,"accuracy":0.5,"best":true})"
       << "\n";
  file.flush();
  run.update();
  CHECK(run.status().step == 50);
  CHECK(run.status().steps_per_second == 10);
  CHECK_FALSE(run.over());
  const std::string table = status_table({run});
  const char* row =
      "50/400  12 %     0.5000        0.1          80   0.2500 50.00 %     0:35  val.loss 0.2500 at step 49";
  CHECK_MESSAGE(table.find(row) != std::string::npos, table);
  file << R"({"event":"end","steps":400,"best":{"metric":"val.loss","value":0.125,"step":399}})"
       << "\n";
  file.flush();
  run.update();
  CHECK(run.over());
  CHECK(*run.status().best == "val.loss 0.1250 at step 399");
  std::ofstream(dir.path() + "/metrics.jsonl") << R"({"event":"start"})"
                                               << "\n";
  run.update();
  CHECK(run.status().state == "running");
  CHECK(run.status().step == 0);
}

TEST_CASE("a line of a run's file that is no event is named") {
  const TempDir dir;
  std::ofstream(dir.path() + "/metrics.jsonl") << "what is this\n";
  RunFollower run(dir.path());
  const std::string expected = dir.path() + "/metrics.jsonl: expected an event per line, found: what is this";
  CHECK_THROWS_WITH_AS(run.update(), expected.c_str(), Error);
}

TEST_CASE("the progress line fits into 80 columns and says what is known") {
  CHECK_EQ(progress_line({.step = 45, .total_steps = 100, .epoch = 2, .loss = 0.5}),
           "epoch 3 [####      ] 45 %  45/100 loss 0.5000");
  const std::string line = progress_line({.step = 9999,
                                          .total_steps = 10000,
                                          .epoch = 19,
                                          .samples_per_second = 56700,
                                          .seconds_left = 3599.6,
                                          .loss = 0.1234});
  CHECK_EQ(line, "epoch 20 [######### ] 99 %  9999/10000 loss 0.1234, 56700/s, 1:00:00 left");
  CHECK(line.size() <= 80);
  CHECK_EQ(clock_text(59.4), "0:59");
  CHECK_EQ(clock_text(7384), "2:03:04");
}

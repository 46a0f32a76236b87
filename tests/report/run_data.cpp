// A run's log as the report and the sweep read it.
#include "report/run_data.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "report/html_report.h"
#include "support/fuzz.h"

using namespace lockstep;

namespace {

RunData read(const std::string& log) {
  std::istringstream stream(log);
  return parse_run_log(stream, "metrics.jsonl");
}

constexpr const char* kStart =
    R"({"event":"start","world_size":2,"samples":64,"steps_per_epoch":4,"environment":{"cpu":"X"},"config":"train: {batch_size: 8, class_weights: [1, 2]}\nmodel: {layers: [relu, {linear: 3}]}"})"
    "\n";

}  // namespace

TEST_CASE("a log becomes curves and times and settings") {
  const RunData run = read(
      std::string(kStart) +
      R"({"event":"time","step":0,"steps":1,"data":[1,1],"forward":[1,1],"backward":[1,1],"communication":[1,1],"optimizer":[1,1]}
{"event":"step","step":0,"epoch":0,"loss":2.5,"lr":0.1,"samples":16,"samples_seen":16,"samples_per_second":1}
{"event":"time","step":4,"steps":2,"data":[0.2,0.4],"forward":[1,1],"backward":[2,2],"communication":[3,1],"optimizer":[1,1]}
{"event":"step","step":4,"epoch":1,"loss":null,"lr":0.1,"samples":16,"samples_seen":80,"samples_per_second":128}
{"event":"eval","step":4,"epoch":1,"loss":0.5,"count":9,"accuracy":0.75,"best":true,"seconds":3,"confusion":[[1]]}
{"event":"end","steps":5,"seconds":2.5,"model_sha256":"00"}
)");
  CHECK(run.world_size == 2);
  CHECK(run.environment.at("cpu") == "X");
  REQUIRE(run.steps.size() == 2);
  CHECK(run.steps[1].samples_seen == 80);
  CHECK(std::isnan(run.steps[1].loss));
  CHECK(run.evals[0].values == std::map<std::string, double>{{"loss", 0.5}, {"accuracy", 0.75}});
  CHECK(run.ended == 5);
  CHECK(throughput(run) == doctest::Approx(128));
  REQUIRE(mean_times(run).size() == 2);
  CHECK(mean_times(run)[0][3] == doctest::Approx(1.5));  // the first line's step warms up
  CHECK(mean_times(run)[1][0] == doctest::Approx(0.2));
  CHECK(run.settings == std::vector<std::pair<std::string, std::string>>{{"train.batch_size", "8"},
                                                                         {"train.class_weights", "[1, 2]"},
                                                                         {"model.layers.0", "relu"},
                                                                         {"model.layers.1.linear", "3"}});
}

TEST_CASE("a log that a kill cut off is read up to there and another file is refused") {
  const RunData cut =
      read(std::string(kStart) + R"({"event":"step","step":0,"loss":1,"samples_per_second":5})" + "\n{\"event\":\"st");
  CHECK(cut.steps.size() == 1);
  CHECK_FALSE(cut.steps[0].samples_seen.has_value());
  CHECK_FALSE(cut.ended.has_value());
  CHECK(state_of(cut) == "not ended");
  CHECK(std::isnan(throughput(cut)));
  CHECK(mean_times(cut).empty());
  CHECK_THROWS_AS(read("{\"event\":\"st\nhello\n"), Error);
  CHECK_THROWS_AS(read("[1]\n"), Error);
  CHECK_THROWS_AS(read_run_data("/nowhere"), Error);
}

TEST_CASE("a run that has not ended is told with how long it has been quiet") {
  RunData run = read(kStart);
  run.quiet = 12.4;
  CHECK(state_of(run) == "not ended: last line 12 s ago");
  run.quiet = 600;
  CHECK(state_of(run) == "not ended: last line 10 min ago");
  run.quiet = 86400;
  CHECK(state_of(run) == "not ended: last line 24 h ago");
  run.stopped = "signal 15";
  CHECK(state_of(run) == "stopped: signal 15");
  run.ended = 5;
  CHECK(state_of(run) == "ended");
}

TEST_CASE("numbers of the wrong type in a log are no numbers") {
  const RunData run = read(R"({"event":"start","world_size":"two","environment":[1],"config":7}
{"event":"step","step":1.5,"loss":"x","lr":[],"samples_seen":"many"}
{"event":"time","steps":-1,"data":{"a":1},"forward":[null,"x"]}
)");
  CHECK(run.world_size == 0);
  CHECK(run.steps[0].step == 0);
  CHECK(std::isnan(run.steps[0].lr));
}

TEST_CASE("fuzzed logs are read or refused and never break the page") {
  test::fuzz("run_log", [](const std::string& bytes) {
    const RunData run = read(bytes);
    (void)throughput(run);
    const std::string page = html_report({run}, nullptr);
    const size_t data = page.find("id=\"data\">") + 10, end = page.find("</script>", data);
    CHECK(nlohmann::json::accept(page.substr(data, end - data)));
  });
}

#include "train/svg_chart.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace lockstep;

TEST_CASE("ticks are round numbers inside the range") {
  CHECK(round_ticks(0, 50, 5) == std::vector<double>{0, 10, 20, 30, 40, 50});
  CHECK(round_ticks(0.1, 2.4, 5) == std::vector<double>{0.5, 1, 1.5, 2});
  CHECK(round_ticks(-1, 1, 4) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
  CHECK(round_ticks(3, 3, 4) == std::vector<double>{3});
}

TEST_CASE("values that are not finite leave a gap and an empty chart is still a picture") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = svg_chart("t", {{.title = "p", .curves = {{"a", {{0, 1}, {1, nan}, {2, 3}}}, {"b", {}}}}});
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg_chart("t", {}).ends_with("</svg>\n"));
}

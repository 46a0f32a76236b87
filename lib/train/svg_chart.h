// Line charts as SVG text: panels side by side, several curves each, ticks at round numbers, one legend.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct Curve {
  std::string label;
  std::vector<std::pair<double, double>> points;  // x ascending; non-finite points are left out
};

struct Panel {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  bool log_y = false;  // needs positive values; others are left out
};

// Round tick positions covering [low, high]: steps of 1, 2 or 5 times a power of ten, about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);

// Curves that lie on each other stay visible: each later one is drawn thinner on top of the earlier ones.
std::string svg_chart(const std::string& title, const std::vector<Panel>& panels);

}  // namespace lockstep

// A part of a StepLayout as a picture: a row for the host and one for each stream, events as arrows.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/step_layout.h"

namespace lockstep::test {

struct StepPicture {
  std::vector<std::string> rows;                      // their names, the host's first
  double from = 0, to = 0;                            // what is shown
  std::vector<std::pair<double, std::string>> marks;  // places on top, with what begins there
};

inline std::string step_svg(const StepLayout& layout, const StepPicture& picture) {
  // Okabe and Ito's colours: told apart by readers with any colour vision.
  const std::vector<std::pair<std::string, std::string>> colours{
      {"asks", "#c8c8c8"},     {"waits", "#ffffff"},  {"forward", "#0072b2"}, {"loss", "#f0e442"},
      {"backward", "#e69f00"}, {"update", "#009e73"}, {"copy", "#56b4e9"},    {"sum", "#cc79a7"}};
  constexpr double left = 84, width = 1000, top = 46, pitch = 58, height = 26, margin = 12;
  const double bottom = top + pitch * static_cast<double>(picture.rows.size());
  const auto x = [&](double time) {
    return left + width * (std::clamp(time, picture.from, picture.to) - picture.from) / (picture.to - picture.from);
  };
  const auto y = [&](int row) { return top + pitch * row; };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n"
      "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
      "orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#000000\"/></marker></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      left + width + margin, bottom + 34);
  for (const auto& [at, text] : picture.marks)
    out += fmt::format(
        "<path d=\"M{0:.1f} 24 V{1:.1f}\" stroke=\"#a0a0a0\" stroke-dasharray=\"3 3\"/>\n"
        "<text x=\"{2:.1f}\" y=\"20\">{3}</text>\n",
        x(at), bottom - 14, x(at) + 2, text);
  for (size_t row = 0; row < picture.rows.size(); ++row)
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text>\n<path d=\"M{} {:.1f} H{}\" stroke=\"#d8d8d8\"/>\n",
                       margin, y(static_cast<int>(row)) + 18, picture.rows[row], left,
                       y(static_cast<int>(row)) + height, left + width);
  for (const Box& box : layout.boxes) {
    if (box.to <= picture.from || box.from >= picture.to) continue;
    const auto colour = std::ranges::find(colours, box.kind, &std::pair<std::string, std::string>::first);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" stroke=\"#404040\" "
        "stroke-width=\"0.5\"{}/>\n",
        x(box.from), y(box.row), x(box.to) - x(box.from), height, colour->second,
        box.kind == "waits" ? " stroke-dasharray=\"2 2\"" : "");
  }
  for (const Arrow& arrow : layout.arrows) {
    if (arrow.from < picture.from || arrow.to > picture.to) continue;
    const bool down = arrow.to_row > arrow.from_row;
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f} L{:.1f} {:.1f}\" stroke=\"#000000\" stroke-width=\"1\" fill=\"none\" "
        "marker-end=\"url(#tip)\"/>\n",
        x(arrow.from), y(arrow.from_row) + (down ? height : 0), x(arrow.to), y(arrow.to_row) + (down ? 0 : height));
  }
  double at = left;
  for (const auto& [kind, colour] : colours) {
    out += fmt::format(
        "<rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"14\" height=\"14\" fill=\"{2}\" stroke=\"#404040\" "
        "stroke-width=\"0.5\"/>\n<text x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>\n",
        at, bottom + 8, colour, at + 19, bottom + 20, kind);
    at += 100;
  }
  return out + fmt::format(
                   "<path d=\"M{0:.1f} {1:.1f} h24\" stroke=\"#000000\" marker-end=\"url(#tip)\"/>\n"
                   "<text x=\"{2:.1f}\" y=\"{3:.1f}\">event</text>\n</svg>\n",
                   at, bottom + 15, at + 30, bottom + 20);
}

}  // namespace lockstep::test

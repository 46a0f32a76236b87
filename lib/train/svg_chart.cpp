#include "train/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

// Okabe and Ito's colours: told apart by readers with any colour vision.
constexpr std::array kColours{"#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#000000", "#8a7f00"};
constexpr double kPanelWidth = 460, kPanelHeight = 300, kLeft = 64, kTop = 56, kBottom = 52, kGap = 24,
                 kLegendLine = 20;

std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double v) { low = std::min(low, v), high = std::max(high, v); }
  void make_usable(double pad) {
    if (low > high) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
    const double margin = (high - low) * pad;
    low -= margin, high += margin;
  }
};

class PanelWriter {
 public:
  PanelWriter(const Panel& panel, double left) : panel_(panel), left_(left) {
    for (const Curve& curve : panel.curves) {
      for (const auto& point : curve.points) {
        if (!usable(point)) continue;
        x_.add(point.first);
        y_.add(mapped(point.second));
      }
    }
    x_.make_usable(0);
    y_.make_usable(0.04);
  }

  std::string write() const {
    std::string out = fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"t\">{}</text>\n", left_ + kPanelWidth / 2,
                                  kTop - 12, escape(panel_.title));
    out += axes();
    for (size_t i = 0; i < panel_.curves.size(); ++i) out += curve(i);
    return out;
  }

 private:
  bool usable(const std::pair<double, double>& p) const {
    return std::isfinite(p.first) && std::isfinite(p.second) && (!panel_.log_y || p.second > 0);
  }
  double mapped(double y) const { return panel_.log_y ? std::log10(y) : y; }
  double px(double x) const { return left_ + (x - x_.low) / (x_.high - x_.low) * kPanelWidth; }
  double py(double y) const { return kTop + (y_.high - y) / (y_.high - y_.low) * kPanelHeight; }

  std::string axes() const {
    std::string out = fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" class=\"f\"/>\n", left_,
                                  kTop, kPanelWidth, kPanelHeight);
    for (double tick : round_ticks(x_.low, x_.high, 6)) {
      if (tick < x_.low || tick > x_.high) continue;
      out += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"g\"/>"
          "<text x=\"{0:.1f}\" y=\"{3:.1f}\" class=\"t\">{4:g}</text>\n",
          px(tick), kTop, kTop + kPanelHeight, kTop + kPanelHeight + 18, tick);
    }
    for (double tick : round_ticks(y_.low, y_.high, 6)) {
      if (tick < y_.low || tick > y_.high) continue;
      const std::string label = panel_.log_y ? fmt::format("{:.3g}", std::pow(10.0, tick)) : fmt::format("{:g}", tick);
      out += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" class=\"g\"/>"
          "<text x=\"{3:.1f}\" y=\"{4:.1f}\" class=\"r\">{5}</text>\n",
          left_, left_ + kPanelWidth, py(tick), left_ - 6, py(tick) + 4, label);
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"t\">{}</text>\n", left_ + kPanelWidth / 2,
                       kTop + kPanelHeight + 38, escape(panel_.x_label));
    const double x = left_ - 46, y = kTop + kPanelHeight / 2;
    out += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1:.1f}\" class=\"t\" transform=\"rotate(-90 {0:.1f} {1:.1f})\">{2}</text>\n", x, y,
        escape(panel_.y_label));
    return out;
  }

  std::string curve(size_t index) const {
    std::string points;
    for (const auto& point : panel_.curves[index].points) {
      if (usable(point)) points += fmt::format("{:.2f},{:.2f} ", px(point.first), py(mapped(point.second)));
    }
    const auto count = static_cast<double>(panel_.curves.size());
    const double width = 1.4 + 1.3 * (count - 1 - static_cast<double>(index));
    return fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" stroke-linejoin=\"round\"/>\n",
        points, kColours[index % kColours.size()], width);
  }

  const Panel& panel_;
  double left_;
  Range x_, y_;
};

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {low};
  const double raw = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double digit = raw / power;
  const double step = (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * power;
  std::vector<double> ticks;
  for (double n = std::ceil(low / step - 1e-9); n * step <= high + step * 1e-9; ++n)
    ticks.push_back(n == 0 ? 0 : n * step);
  return ticks;
}

std::string svg_chart(const std::string& title, const std::vector<Panel>& panels) {
  const auto count = static_cast<double>(panels.size());
  const double width = count * (kLeft + kPanelWidth + kGap);
  size_t legend_lines = 0;
  for (const Panel& panel : panels) legend_lines = std::max(legend_lines, (panel.curves.size() + 1) / 2);
  const double legend_top = kTop + kPanelHeight + kBottom + 8;
  const double height = legend_top + static_cast<double>(legend_lines) * kLegendLine + 12;

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>.t{{text-anchor:middle}}.r{{text-anchor:end}}.f{{fill:none;stroke:#444}}.g{{stroke:#ddd;stroke-width:0.7}"
      "}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2:.1f}\" y=\"22\" class=\"t\" font-size=\"15\">{3}</text>\n",
      width, height, width / 2, escape(title));
  for (size_t i = 0; i < panels.size(); ++i)
    out += PanelWriter(panels[i], kLeft + static_cast<double>(i) * (kLeft + kPanelWidth + kGap)).write();
  if (!panels.empty()) {
    for (size_t i = 0; i < panels[0].curves.size(); ++i) {
      const double x = kLeft + static_cast<double>(i % 2) * width / 2,
                   y = legend_top + static_cast<double>(i / 2) * kLegendLine;
      out += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" stroke-width=\"3\"/>"
          "<text x=\"{4:.1f}\" y=\"{5:.1f}\">{6}</text>\n",
          x, x + 24, y, kColours[i % kColours.size()], x + 32, y + 4, escape(panels[0].curves[i].label));
    }
  }
  return out + "</svg>\n";
}

}  // namespace lockstep

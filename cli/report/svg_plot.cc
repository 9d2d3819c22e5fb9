// SPDX-License-Identifier: Apache-2.0
#include "cli/report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 330;
constexpr double kLeft = 62;
constexpr double kRight = 18;
constexpr double kTop = 12;
constexpr double kBottom = 46;
constexpr size_t kMaxPoints = 2000;  // of a series: more are thinned
constexpr int kColours = 8;

// Maps values to pixels along one axis.
class Axis {
 public:
  Axis(double low, double high, Plot::Scale scale, double from, double to)
      : scale_(scale), low_(low), high_(high > low ? high : low + 1), from_(from), to_(to) {
    if (scale == Plot::Scale::kLog && high <= low) high_ = low * 2;
  }

  double At(double value) const {
    const double share = (Scaled(value) - Scaled(low_)) / (Scaled(high_) - Scaled(low_));
    return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
  }
  bool Contains(double value) const { return value >= low_ && value <= high_; }
  std::vector<double> AxisTicks(int count) const { return Ticks(low_, high_, count, scale_); }

 private:
  double Scaled(double value) const { return scale_ == Plot::Scale::kLog ? std::log10(std::max(value, low_)) : value; }

  const Plot::Scale scale_;
  const double low_;
  double high_;
  const double from_;
  const double to_;
};

std::string TickText(double value) { return absl::StrFormat("%.6g", value); }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Range RangeOfX(const Plot& plot) {
  Range range;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) range.Add(point.x);
  }
  for (const PlotMark& mark : plot.marks) {
    if (mark.axis == PlotMark::Axis::kX && range.low <= range.high) range.Add(mark.value);
  }
  if (plot.x_scale == Plot::Scale::kLinear) range.Add(0);
  if (plot.x_max) range.Add(*plot.x_max);
  return range;
}

// An objective far above all values does not squeeze them: the line is then left out.
double HighestY(const Plot& plot) {
  if (plot.y_max) return *plot.y_max;
  double highest = 0;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) highest = std::max(highest, point.high.value_or(point.y));
  }
  const double of_points = highest;
  for (const PlotMark& mark : plot.marks) {
    if (mark.axis == PlotMark::Axis::kY && mark.value < 3 * of_points) highest = std::max(highest, mark.value);
  }
  return highest > 0 ? highest * 1.05 : 1;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), range_(RangeOfX(plot)) {}

  std::string Draw() {
    absl::StrAppendFormat(&svg_, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", kWidth, kHeight,
                          HtmlEscape(plot_.title));
    DrawGrid();
    for (const PlotMark& mark : plot_.marks) DrawMark(mark);
    for (size_t i = 0; i < plot_.series.size(); ++i) DrawSeries(plot_.series[i], static_cast<int>(i) % kColours);
    return absl::StrCat(svg_, "</svg>\n");
  }

 private:
  void DrawGrid() {
    const double bottom = kHeight - kBottom;
    for (const double tick : y_.AxisTicks(5)) {
      absl::StrAppendFormat(&svg_,
                            "<path class=\"grid\" d=\"M%g %.1fH%g\"/><text class=\"tick\" x=\"%g\" y=\"%.1f\" "
                            "text-anchor=\"end\">%s</text>\n",
                            kLeft, y_.At(tick), kWidth - kRight, kLeft - 8, y_.At(tick) + 4, TickText(tick));
    }
    for (const double tick : x_.AxisTicks(7)) {
      absl::StrAppendFormat(&svg_,
                            "<path class=\"grid\" d=\"M%.1f %gV%g\"/><text class=\"tick\" x=\"%.1f\" y=\"%g\" "
                            "text-anchor=\"middle\">%s</text>\n",
                            x_.At(tick), kTop, bottom, x_.At(tick), bottom + 18, TickText(tick));
    }
    absl::StrAppendFormat(&svg_, "<path class=\"axis\" d=\"M%g %gV%gH%g\"/>\n", kLeft, kTop, bottom, kWidth - kRight);
    absl::StrAppendFormat(&svg_, "<text class=\"name\" x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
                          (kLeft + kWidth - kRight) / 2, kHeight - 8, HtmlEscape(plot_.x_name));
    absl::StrAppendFormat(&svg_,
                          "<text class=\"name\" transform=\"translate(14 %g) rotate(-90)\" "
                          "text-anchor=\"middle\">%s</text>\n",
                          (kTop + bottom) / 2, HtmlEscape(plot_.y_name));
  }

  void DrawMark(const PlotMark& mark) {
    const bool across = mark.axis == PlotMark::Axis::kY;
    if (!(across ? y_ : x_).Contains(mark.value)) return;
    if (across) {
      const double y = y_.At(mark.value);
      absl::StrAppendFormat(&svg_,
                            "<path class=\"mark\" d=\"M%g %.1fH%g\"/><text class=\"markname\" x=\"%g\" "
                            "y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                            kLeft, y, kWidth - kRight, kWidth - kRight - 4, y > kTop + 16 ? y - 5 : y + 14,
                            HtmlEscape(mark.name));
    } else {
      const double x = x_.At(mark.value);
      const bool is_left = x > kWidth * 0.7;
      absl::StrAppendFormat(&svg_,
                            "<path class=\"mark\" d=\"M%.1f %gV%g\"/><text class=\"markname\" x=\"%.1f\" y=\"%g\" "
                            "text-anchor=\"%s\">%s</text>\n",
                            x, kTop, kHeight - kBottom, is_left ? x - 5 : x + 5, kHeight - kBottom - 8,
                            is_left ? "end" : "start", HtmlEscape(mark.name));
    }
  }

  void DrawSeries(const PlotSeries& series, int colour) {
    const size_t stride = (series.points.size() + kMaxPoints - 1) / kMaxPoints;
    std::vector<PlotPoint> points;
    for (size_t i = 0; i < series.points.size(); i += stride) points.push_back(series.points[i]);
    // A thinned line still ends at its end.
    if (stride > 1 && series.kind != PlotSeries::Kind::kDots) points.push_back(series.points.back());
    if (series.kind != PlotSeries::Kind::kDots) DrawPath(series, points, colour);
    const bool has_intervals = !points.empty() && points.front().low.has_value();
    if (series.kind == PlotSeries::Kind::kDots || has_intervals) {
      for (const PlotPoint& point : points) DrawDot(point, colour, has_intervals ? 4 : 2);
    }
  }

  void DrawPath(const PlotSeries& series, const std::vector<PlotPoint>& points, int colour) {
    absl::StrAppendFormat(&svg_, "<path class=\"line c%d\" d=\"", colour);
    for (size_t i = 0; i < points.size(); ++i) {
      if (i > 0 && series.kind == PlotSeries::Kind::kSteps) absl::StrAppendFormat(&svg_, "H%.1f", x_.At(points[i].x));
      absl::StrAppendFormat(&svg_, "%s%.1f %.1f", i == 0 ? "M" : "L", x_.At(points[i].x), y_.At(points[i].y));
    }
    absl::StrAppend(&svg_, "\"/>\n");
  }

  void DrawDot(const PlotPoint& point, int colour, int radius) {
    const double x = x_.At(point.x);
    if (point.low && point.high) {
      absl::StrAppendFormat(&svg_, "<path class=\"whisker c%d\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\"/>",
                            colour, x, y_.At(*point.low), y_.At(*point.high), x - 4, y_.At(*point.low), x - 4,
                            y_.At(*point.high));
    }
    absl::StrAppendFormat(&svg_,
                          "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>%s, %s</title></circle>\n",
                          colour, x, y_.At(point.y), radius, TickText(point.x), TickText(point.y));
  }

  const Plot& plot_;
  const Range range_;
  const Axis x_{range_.low, range_.high, plot_.x_scale, kLeft, kWidth - kRight};
  const Axis y_{0, HighestY(plot_), Plot::Scale::kLinear, kHeight - kBottom, kTop};
  std::string svg_;
};

bool IsEmpty(const Plot& plot) {
  return std::ranges::all_of(plot.series, [](const PlotSeries& series) { return series.points.empty(); });
}

std::string Legend(const Plot& plot) {
  std::string text;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    if (plot.series[i].name.empty()) continue;
    absl::StrAppendFormat(&text, "<span><i class=\"b%d\"></i>%s</span>", static_cast<int>(i) % kColours,
                          HtmlEscape(plot.series[i].name));
  }
  return text.empty() ? "" : absl::StrCat("<div class=\"legend\">", text, "</div>\n");
}

}  // namespace

const std::string_view kPlotStyle = R"(
:root { --c0: #2563eb; --c1: #d97706; --c2: #059669; --c3: #db2777; --c4: #7c3aed; --c5: #0891b2; --c6: #65a30d;
  --c7: #b91c1c; --grid: #e5e7eb; --axis: #9ca3af; --mark: #6b7280; }
@media (prefers-color-scheme: dark) {
  :root { --c0: #60a5fa; --c1: #fbbf24; --c2: #34d399; --c3: #f472b6; --c4: #a78bfa; --c5: #22d3ee; --c6: #a3e635;
    --c7: #f87171; --grid: #2b313b; --axis: #6b7280; --mark: #9ca3af; } }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: .4rem; }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
.grid { stroke: var(--grid); } .axis { stroke: var(--axis); fill: none; }
.tick, .name, .markname { fill: var(--muted); } .markname { font-size: 11px; }
.mark { stroke: var(--mark); stroke-dasharray: 5 4; stroke-width: 1.3; }
.line { fill: none; stroke-width: 1.9; stroke-linejoin: round; } .whisker { fill: none; stroke-width: 1.4; }
.dot { stroke: none; fill-opacity: .65; } .line + .dot, .whisker + .dot { fill-opacity: 1; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .8rem; color: var(--muted); margin-top: .3rem; }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em; }
.line.c0, .whisker.c0 { stroke: var(--c0); } .dot.c0 { fill: var(--c0); } .b0 { background: var(--c0); }
.line.c1, .whisker.c1 { stroke: var(--c1); } .dot.c1 { fill: var(--c1); } .b1 { background: var(--c1); }
.line.c2, .whisker.c2 { stroke: var(--c2); } .dot.c2 { fill: var(--c2); } .b2 { background: var(--c2); }
.line.c3, .whisker.c3 { stroke: var(--c3); } .dot.c3 { fill: var(--c3); } .b3 { background: var(--c3); }
.line.c4, .whisker.c4 { stroke: var(--c4); } .dot.c4 { fill: var(--c4); } .b4 { background: var(--c4); }
.line.c5, .whisker.c5 { stroke: var(--c5); } .dot.c5 { fill: var(--c5); } .b5 { background: var(--c5); }
.line.c6, .whisker.c6 { stroke: var(--c6); } .dot.c6 { fill: var(--c6); } .b6 { background: var(--c6); }
.line.c7, .whisker.c7 { stroke: var(--c7); } .dot.c7 { fill: var(--c7); } .b7 { background: var(--c7); }
)";

std::string ToSvg(const Plot& plot) {
  const std::string drawing = IsEmpty(plot) ? "<p class=\"empty\">No measurements.</p>\n" : Drawing(plot).Draw();
  return absl::StrCat("<figure><figcaption>", HtmlEscape(plot.title), "</figcaption>\n", drawing, Legend(plot),
                      "</figure>\n");
}

std::string HtmlEscape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::vector<double> Ticks(double low, double high, int count, Plot::Scale scale) {
  std::vector<double> ticks;
  if (!(high > low)) return ticks;
  if (scale == Plot::Scale::kLog) {
    const double decades = std::log10(high / low);
    const std::vector<double> steps = decades <= 3 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
    for (int power = static_cast<int>(std::floor(std::log10(low))); std::pow(10, power) <= high; ++power) {
      for (const double step : steps) {
        const double tick = step * std::pow(10, power);
        if (tick >= low && tick <= high) ticks.push_back(tick);
      }
    }
    if (ticks.size() >= 2) return ticks;
    ticks.clear();  // within one step: as on a linear axis
  }
  const double raw = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double rest = raw / power;
  const double step = (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10) * power;
  for (double multiple = std::ceil(low / step); multiple * step <= high * (1 + 1e-12); ++multiple) {
    ticks.push_back(multiple * step);
  }
  return ticks;
}

}  // namespace baton

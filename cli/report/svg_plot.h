// SPDX-License-Identifier: Apache-2.0
// Draws plots as SVG for a page whose style sheet is kPlotStyle, light or dark as the reader's system is. Pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

struct PlotPoint {
  double x = 0;
  double y = 0;
  std::optional<double> low;  // with `high`: the ends of a confidence interval of y
  std::optional<double> high;
};

struct PlotSeries {
  enum class Kind {
    kLine,
    kSteps,  // y holds from its x to the next
    kDots,
  };
  std::string name;  // for the legend; empty: not in the legend
  Kind kind = Kind::kLine;
  std::vector<PlotPoint> points;  // ascending in x, but for kDots
};

// A straight line across the plot, such as an objective.
struct PlotMark {
  enum class Axis { kX, kY };
  Axis axis = Axis::kY;
  double value = 0;
  std::string name;
};

struct Plot {
  enum class Scale { kLinear, kLog };
  std::string title;
  std::string x_name;
  std::string y_name;
  Scale x_scale = Scale::kLinear;    // kLog: all x are above 0
  std::optional<double> x_max = {};  // default: of the points
  std::optional<double> y_max = {};  // default: of the points
  std::vector<PlotSeries> series;
  std::vector<PlotMark> marks;
};

// The colours and sizes of plots, for a <style> element.
extern const std::string_view kPlotStyle;

// Returns a <figure>. A plot without points says that it is empty.
std::string ToSvg(const Plot& plot);

// Returns the text with the five characters escaped that mean something in HTML.
std::string HtmlEscape(std::string_view text);

// Returns about `count` round numbers from `low` to `high`: multiples of 1, 2 or 5 times a power of ten; for kLog,
// those numbers themselves.
std::vector<double> Ticks(double low, double high, int count, Plot::Scale scale);

}  // namespace baton

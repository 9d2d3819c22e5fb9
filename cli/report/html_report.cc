// SPDX-License-Identifier: Apache-2.0
#include "cli/report/html_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/answer_text.h"
#include "cli/report/load_series.h"
#include "cli/report/svg_plot.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxCurves = 8;  // of one plot

constexpr std::string_view kPageStyle = R"(
:root { color-scheme: light dark; --back: #f6f7f9; --card: #ffffff; --text: #1f2937; --muted: #5b6472; --line: #e2e5ea; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0f1216; --card: #171b21; --text: #e5e7eb; --muted: #9aa4b2; --line: #2b313b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 1.6rem 1.2rem 3rem; }
h1 { font-size: 1.35rem; margin: 0 0 .2rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .7rem; }
p { margin: .2rem 0; } .muted, .empty { color: var(--muted); }
.grid2 { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; }
.facts { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); margin-top: 1.1rem; }
.facts .card { padding: .7rem 1rem; } .facts b { display: block; font-size: 1.3rem; font-weight: 650; }
.facts span { color: var(--muted); font-size: .82rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--muted); font-weight: 600; font-size: .82rem; } th:first-child, td:first-child { text-align: left; }
tr:last-child td { border-bottom: 0; } td.wide { white-space: normal; text-align: left; }
)";

std::string Milliseconds(const LatencySummary& summary, double seconds) {
  return summary.count > 0 ? absl::StrFormat("%.2f", seconds * 1e3) : "-";
}

std::string RunName(const HtmlPage& page, size_t index) {
  const double rate = page.runs[index].rate;
  std::string name = rate > 0 ? absl::StrFormat("%.4g/s", rate) : "";
  if (page.runs.size() > 1) name = absl::StrCat("run ", index + 1, name.empty() ? "" : ": ", name);
  return name;
}

// Returns the index of the run that the page shows over time: the last at the goodput, or else the last.
size_t ShownRun(const HtmlPage& page) {
  size_t shown = page.runs.size() - 1;
  for (size_t i = 0; page.search && page.search->goodput && i < page.runs.size(); ++i) {
    if (page.runs[i].rate == *page.search->goodput) shown = i;
  }
  return shown;
}

std::string Card(const std::string& content) { return absl::StrCat("<div class=\"card\">", content, "</div>\n"); }

std::string Fact(const std::string& value, const std::string& name) {
  return Card(absl::StrCat("<b>", HtmlEscape(value), "</b><span>", HtmlEscape(name), "</span>"));
}

Plot AttainmentPlot(const HtmlPage& page) {
  std::map<double, Attainment> by_rate;
  for (const HtmlRun& run : page.runs) {
    if (!run.report.slo || run.rate <= 0) continue;
    by_rate[run.rate].met += run.report.slo->met;
    by_rate[run.rate].requests += run.report.slo->requests;
  }
  PlotSeries series = {.name = "", .kind = PlotSeries::Kind::kLine, .points = {}};
  for (const auto& [rate, attainment] : by_rate) {
    const Interval interval = WilsonInterval(attainment);
    series.points.push_back(
        {.x = rate, .y = 100 * attainment.share(), .low = 100 * interval.low, .high = 100 * interval.high});
  }
  Plot plot = {.title = "Requests within their objectives, with 95 % intervals",
               .x_name = "requests per second",
               .y_name = "% of requests",
               .y_max = 100,
               .series = {std::move(series)},
               .marks = {}};
  if (page.search) {
    plot.marks.push_back(
        {.axis = PlotMark::Axis::kY, .value = 100 * page.attain, .name = absl::StrFormat("%g %%", 100 * page.attain)});
    if (page.search->goodput) {
      plot.marks.push_back({.axis = PlotMark::Axis::kX,
                            .value = *page.search->goodput,
                            .name = absl::StrFormat("goodput %.4g/s", *page.search->goodput)});
    }
  }
  return plot;
}

// Returns the latest runs, at most kMaxCurves, by rate.
std::vector<size_t> RunsToDraw(const HtmlPage& page) {
  std::vector<size_t> runs;
  for (size_t i = page.runs.size() - std::min(page.runs.size(), kMaxCurves); i < page.runs.size(); ++i)
    runs.push_back(i);
  std::ranges::stable_sort(runs, {}, [&page](size_t run) { return page.runs[run].rate; });
  return runs;
}

Plot CdfPlot(const HtmlPage& page, const std::string& title, std::vector<double> (*values)(const LoadSeries&),
             absl::Duration objective) {
  Plot plot = {.title = title,
               .x_name = "milliseconds",
               .y_name = "% of requests",
               .x_scale = Plot::Scale::kLog,
               .y_max = 100,
               .series = {},
               .marks = {}};
  for (const size_t i : RunsToDraw(page)) {
    const std::vector<double> sorted = values(MakeSeries(page.runs[i].result));
    PlotSeries series = {
        .name = page.runs.size() > 1 ? RunName(page, i) : "", .kind = PlotSeries::Kind::kSteps, .points = {}};
    for (size_t k = 0; k < sorted.size(); ++k) {
      const double share = 100.0 * static_cast<double>(k + 1) / static_cast<double>(sorted.size());
      series.points.push_back({.x = std::max(sorted[k] * 1e3, 1e-3), .y = share, .low = {}, .high = {}});
    }
    plot.series.push_back(std::move(series));
  }
  if (objective < absl::InfiniteDuration()) {
    plot.marks.push_back({.axis = PlotMark::Axis::kX,
                          .value = absl::ToDoubleMilliseconds(objective),
                          .name = absl::FormatDuration(objective)});
  }
  return plot;
}

Plot TimelinePlot(const HtmlRun& run, const std::string& name, std::optional<double> RequestLatency::* value,
                  absl::Duration objective) {
  PlotSeries series = {.name = "", .kind = PlotSeries::Kind::kDots, .points = {}};
  for (const RequestLatency& request : MakeSeries(run.result).requests) {
    if ((request.*value).has_value()) {
      series.points.push_back({.x = request.start, .y = *(request.*value) * 1e3, .low = {}, .high = {}});
    }
  }
  Plot plot = {.title = name + " of each request, by its arrival",
               .x_name = "seconds",
               .y_name = "milliseconds",
               .x_max = run.report.duration_seconds,
               .series = {std::move(series)},
               .marks = {}};
  if (objective < absl::InfiniteDuration()) {
    plot.marks.push_back({.axis = PlotMark::Axis::kY,
                          .value = absl::ToDoubleMilliseconds(objective),
                          .name = absl::FormatDuration(objective)});
  }
  return plot;
}

Plot InFlightPlot(const HtmlRun& run) {
  PlotSeries series = {.name = "", .kind = PlotSeries::Kind::kSteps, .points = {}};
  for (const InFlightStep& step : InFlight(run.result)) {
    series.points.push_back({.x = step.at, .y = static_cast<double>(step.requests), .low = {}, .high = {}});
  }
  return {.title = "Requests in flight, seen by the client",
          .x_name = "seconds",
          .y_name = "requests",
          .x_max = run.report.duration_seconds,
          .series = {std::move(series)},
          .marks = {}};
}

Plot WorkersPlot(const HtmlRun& run, const std::string& title, const std::string& unit, int WorkerSample::* value) {
  Plot plot = {.title = title,
               .x_name = "seconds",
               .y_name = unit,
               .x_max = run.report.duration_seconds,
               .series = {},
               .marks = {}};
  for (const auto& [worker, samples] : run.workers) {
    PlotSeries series = {.name = worker, .kind = PlotSeries::Kind::kSteps, .points = {}};
    for (const WorkerSample& sample : samples) {
      const double at = absl::ToDoubleSeconds(sample.at - run.result.warmup_duration);
      if (at < -0.5) continue;  // of the warm-up
      series.points.push_back({.x = std::max(at, 0.0), .y = static_cast<double>(sample.*value), .low = {}, .high = {}});
    }
    // The last sample holds to the end.
    if (!series.points.empty()) {
      series.points.push_back(series.points.back());
      series.points.back().x = std::max(series.points.back().x, run.report.duration_seconds);
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

std::string RunTable(const HtmlPage& page) {
  std::string rows;
  for (size_t i = 0; i < page.runs.size(); ++i) {
    const LoadReport& report = page.runs[i].report;
    size_t failed = 0;
    for (const auto& [kind, errors] : report.errors) failed += errors.count;
    const auto cell = [&rows](const std::string& text) { absl::StrAppend(&rows, "<td>", HtmlEscape(text), "</td>"); };
    rows += "<tr>";
    cell(RunName(page, i).empty() ? "run" : RunName(page, i));
    cell(absl::StrCat(report.completed));
    cell(absl::StrCat(failed));
    cell(absl::StrFormat("%.2f", report.requests_per_second));
    cell(absl::StrFormat("%.0f", report.output_tokens_per_second));
    for (const LatencySummary* summary : {&report.ttft, &report.tpot, &report.itl, &report.end_to_end}) {
      cell(absl::StrCat(Milliseconds(*summary, summary->p50), " / ", Milliseconds(*summary, summary->p99)));
    }
    cell(report.slo && report.slo->requests > 0
             ? absl::StrFormat("%.1f %%",
                               100.0 * static_cast<double>(report.slo->met) / static_cast<double>(report.slo->requests))
             : "-");
    rows += "</tr>\n";
  }
  return absl::StrCat(
      "<div class=\"scroll\"><table><tr><th>run</th><th>completed</th><th>failed</th><th>requests/s</th>"
      "<th>output tokens/s</th><th>TTFT p50 / p99, ms</th><th>TPOT p50 / p99</th><th>ITL p50 / p99</th>"
      "<th>end to end p50 / p99</th><th>within objectives</th></tr>\n",
      rows, "</table></div>");
}

std::string ErrorTable(const HtmlPage& page) {
  std::string rows;
  for (size_t i = 0; i < page.runs.size(); ++i) {
    for (const auto& [kind, errors] : page.runs[i].report.errors) {
      absl::StrAppend(&rows, "<tr><td>", HtmlEscape(RunName(page, i)), "</td><td>", HtmlEscape(kind), "</td><td>",
                      errors.count, "</td><td class=\"wide\">", HtmlEscape(errors.first_reason), "</td></tr>\n");
    }
  }
  if (rows.empty()) return "";
  return absl::StrCat("<h2>Failed requests</h2>\n",
                      Card(absl::StrCat("<div class=\"scroll\"><table><tr><th>run</th><th>error</th><th>count</th>"
                                        "<th>first reason</th></tr>\n",
                                        rows, "</table></div>")));
}

std::string Facts(const HtmlPage& page, size_t shown) {
  const LoadReport& report = page.runs[shown].report;
  const std::string of_run = page.runs.size() > 1 ? absl::StrCat(", ", RunName(page, shown)) : "";
  std::string facts;
  if (page.search) {
    const auto rate = [](std::optional<double> value) { return value ? absl::StrFormat("%.4g", *value) : "?"; };
    facts += Fact(page.search->goodput ? absl::StrFormat("%.4g/s", *page.search->goodput) : "none",
                  absl::StrCat("goodput at ", absl::StrFormat("%g %%", 100 * page.attain), ", 95 % interval ",
                               rate(page.search->surely_met), " to ", rate(page.search->surely_missed)));
  }
  facts += Fact(absl::StrFormat("%.2f", report.requests_per_second), "requests/s completed" + of_run);
  facts += Fact(absl::StrFormat("%.0f", report.output_tokens_per_second), "output tokens/s" + of_run);
  facts += Fact(Milliseconds(report.ttft, report.ttft.p50) + " ms", "TTFT p50" + of_run);
  facts += Fact(Milliseconds(report.ttft, report.ttft.p99) + " ms", "TTFT p99" + of_run);
  facts += Fact(Milliseconds(report.tpot, report.tpot.p50) + " ms", "TPOT p50" + of_run);
  facts += Fact(Milliseconds(report.tpot, report.tpot.p99) + " ms", "TPOT p99" + of_run);
  return absl::StrCat("<div class=\"facts\">", facts, "</div>\n");
}

std::string Plots(const std::vector<Plot>& plots) {
  std::string text;
  for (const Plot& plot : plots) text += Card(ToSvg(plot));
  return absl::StrCat("<div class=\"grid2\">\n", text, "</div>\n");
}

}  // namespace

std::string ToHtml(const HtmlPage& page) {
  const size_t shown = ShownRun(page);
  const HtmlRun& run = page.runs[shown];
  const Slo slo = run.report.slo ? run.report.slo->slo : Slo{};
  const std::string which = page.runs.size() > 1 ? absl::StrCat(" (", RunName(page, shown), ")") : "";
  std::string body = absl::StrCat("<h1>baton bench serve: ", HtmlEscape(page.model), "</h1>\n<p class=\"muted\">",
                                  HtmlEscape(page.target), ", ",
                                  absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", page.time, absl::UTCTimeZone()),
                                  "</p>\n<p>", HtmlEscape(page.load), "</p>\n", Facts(page, shown));
  std::vector<Plot> curves;
  if (Plot attainment = AttainmentPlot(page); attainment.series.front().points.size() > 1) {
    curves.push_back(std::move(attainment));
  }
  curves.push_back(CdfPlot(
      page, "TTFT, cumulative", [](const LoadSeries& series) { return Sorted(series, &RequestLatency::ttft); },
      slo.ttft));
  curves.push_back(CdfPlot(
      page, "TPOT, cumulative", [](const LoadSeries& series) { return Sorted(series, &RequestLatency::tpot); },
      slo.tpot));
  curves.push_back(CdfPlot(page, "End to end, cumulative", &SortedEndToEnd, absl::InfiniteDuration()));
  absl::StrAppend(&body, "<h2>Latencies</h2>\n", Plots(curves));

  std::vector<Plot> times = {TimelinePlot(run, "TTFT", &RequestLatency::ttft, slo.ttft),
                             TimelinePlot(run, "TPOT", &RequestLatency::tpot, slo.tpot), InFlightPlot(run)};
  if (!run.workers.empty()) {
    times.push_back(WorkersPlot(run, "Batch of each worker", "sequences", &WorkerSample::running));
    times.push_back(WorkersPlot(run, "Queue of each worker", "requests", &WorkerSample::waiting));
    times.push_back(WorkersPlot(run, "KV pages in use of each worker", "pages", &WorkerSample::pages_used));
  }
  absl::StrAppend(&body, "<h2>Over time", which, "</h2>\n", Plots(times));
  absl::StrAppend(&body, "<h2>Runs</h2>\n", Card(RunTable(page)), ErrorTable(page));
  return Concat("<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">",
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>baton bench serve: ",
                HtmlEscape(page.model), "</title>\n<style>", kPageStyle, kPlotStyle, "</style></head>\n<body><main>\n",
                body, "</main></body>\n</html>\n");
}

}  // namespace baton

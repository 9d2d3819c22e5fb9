// SPDX-License-Identifier: Apache-2.0
#include "cli/report/trace_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace baton {
namespace {

constexpr size_t kBarCells = 32;

double Milliseconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e6; }
double Microseconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e3; }

std::string ValueOf(const v1::TraceAttribute& attribute) {
  switch (attribute.value_case()) {
    case v1::TraceAttribute::kNumber: return absl::StrCat(attribute.number());
    case v1::TraceAttribute::kReal: return absl::StrCat(attribute.real());
    case v1::TraceAttribute::kTexts: return absl::StrJoin(attribute.texts().values(), ", ");
    default: return attribute.text();
  }
}

std::string BarOf(const v1::TraceSpan& span, uint64_t start, uint64_t total) {
  const auto cell = [&](uint64_t nanos) {
    const uint64_t since = std::max(nanos, start) - start;
    return std::min<size_t>(kBarCells - 1, total == 0 ? 0 : static_cast<size_t>(since * kBarCells / total));
  };
  std::string bar(kBarCells, ' ');
  const size_t from = cell(span.start_unix_nanos());
  const size_t to = std::max(from, cell(span.end_unix_nanos()));
  std::fill(bar.begin() + static_cast<ptrdiff_t>(from), bar.begin() + static_cast<ptrdiff_t>(to) + 1, '#');
  return bar;
}

}  // namespace

std::string TimelineOf(const v1::Trace& trace) {
  std::string text = absl::StrCat("request ", trace.request_id(), ", trace ", trace.trace_id());
  if (!trace.request_label().empty()) absl::StrAppend(&text, ", label ", absl::Utf8SafeCEscape(trace.request_label()));
  text += '\n';
  if (trace.spans().empty()) return text;
  const uint64_t start = trace.spans(0).start_unix_nanos();
  const uint64_t total = trace.spans(0).end_unix_nanos() - start;
  std::map<uint64_t, int> depths;  // by span id
  std::vector<std::string> names;
  size_t name_width = 0;
  size_t process_width = 0;
  for (const v1::TraceSpan& span : trace.spans()) {
    const auto parent = depths.find(span.parent_span_id());
    const int depth = depths[span.span_id()] = parent == depths.end() ? 0 : parent->second + 1;
    names.push_back(absl::StrCat(std::string(2 * static_cast<size_t>(depth), ' '), span.name(),
                                 span.name() == "attempt" ? absl::StrCat(" ", span.attempt()) : ""));
    name_width = std::max(name_width, names.back().size());
    process_width = std::max(process_width, span.process().size());
  }
  absl::StrAppendFormat(&text, "%12s %12s  %-*s  %-*s\n", "START", "TIME", static_cast<int>(name_width), "STAGE",
                        static_cast<int>(process_width), "PROCESS");
  for (int i = 0; i < trace.spans_size(); ++i) {
    const v1::TraceSpan& span = trace.spans(i);
    absl::StrAppendFormat(&text, "%9.2f ms %9.2f ms  %-*s  %-*s  |%s|",
                          Milliseconds(std::max(span.start_unix_nanos(), start) - start),
                          Milliseconds(span.end_unix_nanos() - span.start_unix_nanos()), static_cast<int>(name_width),
                          names[i], static_cast<int>(process_width), span.process(), BarOf(span, start, total));
    if (!span.error().empty()) absl::StrAppend(&text, " ended: ", span.error());
    for (const v1::TraceAttribute& attribute : span.attributes()) {
      absl::StrAppend(&text, " ", attribute.key(), "=", ValueOf(attribute));
    }
    text += '\n';
  }
  return text;
}

std::string PerfettoOf(const v1::Trace& trace) {
  nlohmann::json events = nlohmann::json::array();
  std::map<std::string, int> tracks;  // by process
  const uint64_t start = trace.spans().empty() ? 0 : trace.spans(0).start_unix_nanos();
  for (const v1::TraceSpan& span : trace.spans()) {
    const auto [track, is_new] = tracks.try_emplace(span.process(), static_cast<int>(tracks.size()) + 1);
    if (is_new) {
      events.push_back(
          {{"name", "process_name"}, {"ph", "M"}, {"pid", track->second}, {"args", {{"name", span.process()}}}});
    }
    nlohmann::json arguments = nlohmann::json::object();
    for (const v1::TraceAttribute& attribute : span.attributes()) arguments[attribute.key()] = ValueOf(attribute);
    if (!span.error().empty()) arguments["error"] = span.error();
    // Spans of a row may only nest: a transfer overlaps the prefill of its attempt.
    const uint32_t row = 2 * span.attempt() + (span.name() == "transfer" ? 1 : 0);
    const uint64_t from = std::max(span.start_unix_nanos(), start);
    events.push_back({{"name", span.name()},
                      {"ph", "X"},
                      {"pid", track->second},
                      {"tid", row},
                      {"ts", Microseconds(from - start)},
                      {"dur", Microseconds(std::max(span.end_unix_nanos(), from) - from)},
                      {"args", arguments}});
  }
  return nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace baton

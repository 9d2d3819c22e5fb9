// SPDX-License-Identifier: Apache-2.0
#include "cli/report/doctor_paths.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/report/answer_text.h"
#include "cli/report/table.h"

namespace baton {
namespace {

using Kind = Finding::Kind;

struct Path {
  WorkerPair pair;
  std::string transport;
  double bytes_per_second = 0;  // 0: not known
  bool at_least = false;        // the transfer waited for the computation, so that the path may be faster
};

// Returns the paths of the status, with the measured figures in place of the router's.
std::vector<Path> PathsOf(const v1::GetStatusResponse& status, const MeasuredPaths& measured) {
  std::map<WorkerPair, const MeasuredPath*> by_pair;
  for (const MeasuredPath& path : measured.paths) by_pair[path.pair] = &path;
  std::vector<Path> paths;
  for (const v1::PairInfo& pair : status.pairs()) {
    Path path{{pair.prefill_worker(), pair.decode_worker()}, pair.transport(), pair.bytes_per_second()};
    if (path.pair.local()) continue;
    if (const auto found = by_pair.find(path.pair); found != by_pair.end()) {
      const MeasuredPath& figures = *found->second;
      if (!figures.transport.empty()) path.transport = figures.transport;
      if (figures.bytes_per_second > 0) {
        path.bytes_per_second = figures.bytes_per_second;
        path.at_least = figures.waited_for_compute;
      }
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

void AddTransports(const v1::GetStatusResponse& status, const std::vector<Path>& paths,
                   std::vector<Finding>& findings) {
  std::map<std::string, std::string> hosts;  // by worker
  for (const v1::WorkerInfo& worker : status.workers()) hosts[worker.worker_id()] = worker.facts().host();
  for (const Path& path : paths) {
    const std::string& host = hosts[path.pair.prefill];
    if (host.empty() || host != hosts[path.pair.decode] || path.transport.find("tcp") == std::string::npos) continue;
    findings.push_back(
        {Kind::kWarning, absl::StrCat("pair ", path.pair.name(), " is on one host and uses ", path.transport),
         "Shared memory is faster: --transport auto, and one IPC and PID namespace for both processes."});
  }
}

void AddSpeeds(const std::vector<Path>& paths, std::vector<Finding>& findings) {
  std::vector<double> speeds;
  for (const Path& path : paths) {
    if (path.bytes_per_second > 0) speeds.push_back(path.bytes_per_second);
  }
  if (speeds.empty()) return;
  const auto [least, most] = std::ranges::minmax(speeds);
  const bool or_more = std::ranges::any_of(paths, &Path::at_least);
  findings.push_back(
      {Kind::kFine,
       absl::StrFormat("%s between workers %s measured: %.0f to %.0f MB/s%s", Count(speeds.size(), "path"),
                       speeds.size() == 1 ? "is" : "are", least / 1e6, most / 1e6, or_more ? " or more" : ""),
       ""});
  if (speeds.size() < 2) return;
  for (const Path& path : paths) {
    // The others may be faster than their figures, so that this path is slow all the more.
    if (path.bytes_per_second <= 0 || path.at_least) continue;
    std::vector<double> others = speeds;
    others.erase(std::ranges::find(others, path.bytes_per_second));
    const double median = MedianOf(std::move(others));
    if (path.bytes_per_second >= kSlowShare * median) continue;
    findings.push_back({Kind::kWarning,
                        absl::StrFormat("the path %s has %.0f MB/s, the median of the others %.0f MB/s",
                                        path.pair.name(), path.bytes_per_second / 1e6, median / 1e6),
                        "Check the network between the two workers, and --handoff-host."});
  }
}

void AddFailures(const MeasuredPaths& measured, std::vector<Finding>& findings) {
  std::map<std::string, std::vector<std::string>> names;  // by reason
  for (const MeasuredPath& path : measured.paths) {
    if (!path.failure.empty()) names[path.failure].push_back(path.pair.name());
  }
  for (const auto& [reason, paths] : names) {
    findings.push_back({Kind::kWarning,
                        absl::StrCat(Count(paths.size(), "path"), " could not be measured (",
                                     absl::StrJoin(paths, ", "), "): ", reason),
                        "Measure again when the workers are less busy, or leave it out with --no-measure."});
  }
}

}  // namespace

std::vector<Finding> ExaminePaths(const v1::GetStatusResponse& status, const MeasuredPaths& measured) {
  std::vector<Finding> findings;
  const std::vector<Path> paths = PathsOf(status, measured);
  AddTransports(status, paths, findings);
  AddSpeeds(paths, findings);
  AddFailures(measured, findings);
  const bool knows_speeds =
      std::ranges::any_of(paths, [](const Path& path) { return path.bytes_per_second > 0; }) || !measured.paths.empty();
  if (!knows_speeds && status.ready() && !paths.empty()) {
    findings.push_back({Kind::kFine, "no path between workers was measured within the last minute", ""});
  }
  if (measured.paths.size() < measured.possible) {
    findings.push_back(
        {Kind::kFine,
         absl::StrCat(measured.paths.size(), " of ", Count(measured.possible, "path"), " were measured (--max-pairs)"),
         ""});
  }
  return findings;
}

std::string ToText(const MeasuredPaths& measured) {
  Table table({"PATH", "TRANSPORT", "PROMPT TOKENS", "KV", "MB/S", "TTFT MS", "TRANSFER MS", "EXPOSED"});
  bool any = false;
  for (const MeasuredPath& path : measured.paths) {
    if (path.kv_bytes == 0) continue;
    any = true;
    const double share = path.transfer > 0 ? path.exposed / path.transfer : 0;
    table.AddRow({path.pair.name(), path.transport, absl::StrCat(path.prompt_tokens), HumanBytes(path.kv_bytes),
                  path.bytes_per_second > 0
                      ? absl::StrFormat("%s%.0f", path.waited_for_compute ? ">= " : "", path.bytes_per_second / 1e6)
                      : "",
                  absl::StrFormat("%.2f", path.ttft * 1e3), absl::StrFormat("%.2f", path.transfer * 1e3),
                  absl::StrFormat("%.0f %%", share * 100)});
  }
  return any ? table.ToString() : "";
}

}  // namespace baton

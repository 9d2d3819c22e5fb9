// SPDX-License-Identifier: Apache-2.0
// One page of HTML about load runs. The page needs nothing from outside: plots are inline SVG, and there is no script.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/load/goodput_search.h"
#include "cli/load/load_generator.h"
#include "cli/load/status_sampler.h"
#include "cli/report/load_report.h"

namespace baton {

struct HtmlRun {
  double rate = 0;  // requests per second; 0: closed loop, or as recorded
  LoadResult result;
  LoadReport report;
  WorkerSamples workers;  // empty for a target that is no Baton router
};

struct HtmlPage {
  std::string target;
  std::string model;
  std::string load;  // what was sent, in one line
  absl::Time time;
  double attain = 0.9;
  std::optional<GoodputResult> search;
  std::vector<HtmlRun> runs;  // at least one
};

std::string ToHtml(const HtmlPage& page);

}  // namespace baton

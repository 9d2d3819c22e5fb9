// SPDX-License-Identifier: Apache-2.0
// The course and the result of a search for the goodput, as text and as JSON.
#pragma once

#include <string>

#include "cli/load/goodput_search.h"
#include "cli/load/slo.h"
#include "cli/report/load_report.h"

namespace baton {

// Returns a line such as "goodput: the highest rate at which 90 % of requests have TTFT within 1.3s and TPOT within
// 22ms".
std::string GoodputHeadline(const GoodputOptions& options, const Slo& slo);

// The table of runs, row by row as the runs end: the headline and the names of the columns, then a row for each run.
// `report` has objectives.
std::string GoodputHeader(const GoodputOptions& options, const Slo& slo);
std::string GoodputRow(double rate, const LoadReport& report);
std::string GoodputSummary(const GoodputOptions& options, const GoodputResult& result);

// Returns one line without its newline: an object with goodput_search.
std::string GoodputJson(const GoodputOptions& options, const GoodputResult& result);

}  // namespace baton

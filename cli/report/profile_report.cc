// SPDX-License-Identifier: Apache-2.0
#include "cli/report/profile_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/table.h"

namespace baton {
namespace {

struct Fit {
  double mean_error = 0;  // of the absolute relative errors
  double largest_error = 0;
};

Fit FitOf(const StepProfile& profile) {
  Fit fit;
  for (const StepProfile::Step& step : profile.steps) {
    const double error = std::abs(RelativeError(profile, step));
    fit.mean_error += error / static_cast<double>(profile.steps.size());
    fit.largest_error = std::max(fit.largest_error, error);
  }
  return fit;
}

}  // namespace

std::string ToTable(const StepProfile& profile) {
  const StepCost& cost = profile.cost;
  const Fit fit = FitOf(profile);
  std::string text = absl::StrFormat(
      "%s, %d threads, %s\n"
      "a step takes %.3f ms, and %.4f ms per prompt token, %.4f ms per sequence that decodes\n"
      "1000 attended tokens take %.3f us of a prompt, and %.3f us of a sequence that decodes\n"
      "errors of this fit: %.1f %% on the mean, %.1f %% at most\n\n",
      profile.model, profile.threads, profile.numerics_id, 1e3 * cost.step, 1e3 * cost.prompt_token,
      1e3 * cost.decode_row, 1e9 * cost.prompt_attended, 1e9 * cost.decode_attended, 100 * fit.mean_error,
      100 * fit.largest_error);
  Table table({"context", "prompt tokens", "sequences", "measured ms", "fitted ms", "error %"});
  for (const StepProfile::Step& step : profile.steps) {
    table.AddRow({absl::StrCat(step.context_tokens), absl::StrCat(step.prompt_tokens), absl::StrCat(step.decode_rows),
                  absl::StrFormat("%.3f", 1e3 * step.seconds), absl::StrFormat("%.3f", 1e3 * cost.Seconds(step.work())),
                  absl::StrFormat("%.1f", 100 * RelativeError(profile, step))});
  }
  return text + table.ToString();
}

std::string ToJsonLine(const StepProfile& profile) {
  const Fit fit = FitOf(profile);
  const nlohmann::ordered_json json = {{"numerics_id", profile.numerics_id},
                                       {"steps", profile.steps.size()},
                                       {"step_seconds", profile.cost.step},
                                       {"prompt_token_seconds", profile.cost.prompt_token},
                                       {"decode_row_seconds", profile.cost.decode_row},
                                       {"prompt_attended_token_seconds", profile.cost.prompt_attended},
                                       {"decode_attended_token_seconds", profile.cost.decode_attended},
                                       {"mean_error", fit.mean_error},
                                       {"largest_error", fit.largest_error}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

}  // namespace baton

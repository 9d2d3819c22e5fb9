// SPDX-License-Identifier: Apache-2.0
#include "cli/load/goodput_search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/status_macros.h"

namespace baton {
namespace {

constexpr double kZ = 1.959963984540054;  // of a two-sided 95 %

class Search {
 public:
  Search(const GoodputOptions& options, absl::FunctionRef<absl::StatusOr<Attainment>(double)> measure)
      : options_(options), measure_(measure) {}

  absl::StatusOr<GoodputResult> Run() {
    double rate = std::clamp(options_.first_rate, options_.min_rate, options_.max_rate);
    while (runs_ < options_.max_runs) {
      BATON_RETURN_IF_ERROR(Measure(rate));
      const std::optional<double> next = NextRate();
      if (!next) break;
      rate = *next;
    }
    return Result();
  }

 private:
  bool Met(const Attainment& attainment) const { return attainment.share() >= options_.attain; }
  bool IsUndecided(const Attainment& attainment) const {
    const Interval interval = WilsonInterval(attainment);
    return interval.low < options_.attain && options_.attain <= interval.high;
  }

  absl::Status Measure(double rate) {
    RateResult& result = rates_[rate];
    result.rate = rate;
    do {
      BATON_ASSIGN_OR_RETURN(const Attainment run, measure_(rate));
      ++runs_;
      ++result.runs;
      result.attainment.met += run.met;
      result.attainment.requests += run.requests;
    } while (IsUndecided(result.attainment) && result.runs < options_.runs_per_rate && runs_ < options_.max_runs);
    return absl::OkStatus();
  }

  // Returns the lowest rate that missed. Noise may let a higher rate meet the share: that rate does not count.
  std::optional<double> Missed() const {
    for (const auto& [rate, result] : rates_) {
      if (!Met(result.attainment)) return rate;
    }
    return std::nullopt;
  }
  std::optional<double> HighestMet() const {
    std::optional<double> highest;
    for (const auto& [rate, result] : rates_) {
      if (!Met(result.attainment)) break;
      highest = rate;
    }
    return highest;
  }
  static bool IsNarrow(std::optional<double> met, std::optional<double> missed, double width) {
    return met && missed && *missed <= *met * (1 + width);
  }

  // Returns the rate to measure next, or nothing when the search is over.
  std::optional<double> NextRate() const {
    const std::optional<double> met = HighestMet();
    const std::optional<double> missed = Missed();
    if (!missed) return *met < options_.max_rate ? std::optional(std::min(*met * 2, options_.max_rate)) : std::nullopt;
    if (!met) {
      return *missed > options_.min_rate ? std::optional(std::max(*missed / 2, options_.min_rate)) : std::nullopt;
    }
    if (IsNarrow(met, missed, options_.width)) return std::nullopt;
    return std::sqrt(*met * *missed);
  }

  GoodputResult Result() const {
    GoodputResult result;
    for (const auto& [rate, of_rate] : rates_) {
      result.rates.push_back(of_rate);
      const Interval interval = WilsonInterval(of_rate.attainment);
      if (interval.low >= options_.attain && !result.surely_missed) result.surely_met = rate;
      if (interval.high < options_.attain && !result.surely_missed) result.surely_missed = rate;
    }
    result.goodput = HighestMet();
    result.missed = Missed();
    result.is_narrow = IsNarrow(result.goodput, result.missed, options_.width);
    return result;
  }

  const GoodputOptions& options_;
  const absl::FunctionRef<absl::StatusOr<Attainment>(double)> measure_;
  std::map<double, RateResult> rates_;
  int runs_ = 0;
};

}  // namespace

Interval WilsonInterval(const Attainment& sample) {
  if (sample.requests == 0) return {};
  const auto n = static_cast<double>(sample.requests);
  const double p = sample.share();
  const double scale = 1 / (1 + kZ * kZ / n);
  const double centre = scale * (p + kZ * kZ / (2 * n));
  const double half = scale * kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return {.low = std::max(centre - half, 0.0), .high = std::min(centre + half, 1.0)};
}

absl::StatusOr<GoodputResult> FindGoodput(const GoodputOptions& options,
                                          absl::FunctionRef<absl::StatusOr<Attainment>(double rate)> measure) {
  return Search(options, measure).Run();
}

}  // namespace baton

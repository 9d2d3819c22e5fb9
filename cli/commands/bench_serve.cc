// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/commands/bench_serve_flags.h"
#include "cli/commands/bench_target.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/load/run_progress.h"
#include "cli/load/status_sampler.h"
#include "cli/load/ticker.h"
#include "cli/report/aiperf_export.h"
#include "cli/report/goodput_report.h"
#include "cli/report/html_report.h"
#include "cli/report/load_report.h"
#include "cli/report/progress_line.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr int kMaxTraceRequests = 1'000'000;

// A file for a result. Opened before the runs, so that a path that cannot be written is an error at once.
class ResultFile {
 public:
  static absl::StatusOr<ResultFile> Open(const std::string& path) {
    ResultFile file(path);
    if (path.empty() || file.stream_) return file;
    return file.Failure();
  }

  absl::Status Write(const std::string& text) {
    stream_ << text << std::flush;
    return stream_ ? absl::OkStatus() : Failure();
  }

 private:
  explicit ResultFile(const std::string& path) : path_(path) {
    if (!path.empty()) stream_.open(path, std::ios::binary | std::ios::trunc);
  }
  absl::Status Failure() const {
    return absl::UnknownError(
        absl::StrCat("cannot write ", path_, ": ", std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  }

  std::string path_;
  std::ofstream stream_;
};

// Reads the trace, fits it to the model, and says how many requests did not fit.
absl::Status LoadTrace(BenchServeFlags& flags, int max_tokens, const Console& console) {
  flags.replay.max_requests = flags.run_time ? kMaxTraceRequests : flags.workload.requests;
  BATON_ASSIGN_OR_RETURN(flags.workload.trace, ReadTrace(flags.trace, flags.replay));
  Trace& trace = *flags.workload.trace;
  const auto all = trace.requests.size();
  const int too_long = max_tokens > 0 ? FitTrace(trace, flags.too_long, max_tokens) : 0;
  if (too_long > 0) {
    constexpr const char* kTreated[] = {"sent all the same", "cut", "dropped"};
    *console.err << absl::StrCat(too_long, " of ", all, " requests are longer than the model's ", max_tokens,
                                 " tokens: ", kTreated[static_cast<int>(flags.too_long)], " (--too-long)\n");
  }
  if (trace.requests.empty())
    return absl::InvalidArgumentError("every request of the trace is longer than the model's context");
  return absl::OkStatus();
}

// Makes the runs of one command.
class Bench {
 public:
  Bench(BenchServeFlags& flags, const Console& console, BenchTarget target)
      : flags_(flags), console_(console), bench_(std::move(target)), first_seed_(flags.workload.seed) {}

  absl::Status Prepare() {
    Workload& workload = flags_.workload;
    workload.model = bench_.model;
    workload.vocab_size = bench_.vocab_size;
    if (*flags_.api == LoadApi::kOpenAi) workload.salting = Salting::kPrompt;
    if (!flags_.trace.empty()) BATON_RETURN_IF_ERROR(LoadTrace(flags_, bench_.max_context_tokens, console_));
    const int64_t last_turn = int64_t{workload.turns} * (int64_t{workload.prompt_tokens} + workload.output_tokens);
    if (workload.turns > 1 && bench_.max_context_tokens > 0 && last_turn > bench_.max_context_tokens) {
      return UsageError(absl::InvalidArgumentError(absl::StrCat("--turns ", workload.turns, ": the last turn has ",
                                                                last_turn, " tokens, expected at most the model's ",
                                                                bench_.max_context_tokens)));
    }
    wanted_requests_ = workload.requests;
    return SetRate(workload.rate);
  }

  absl::Status RunOnce(int number) {
    if (flags_.runs > 1 && !flags_.json)
      *console_.out << (number > 0 ? "\n" : "") << "run " << number + 1 << " of " << flags_.runs << ": ";
    BATON_RETURN_IF_ERROR(Measure(flags_.runs > 1 ? absl::StrCat("run ", number + 1, ": ") : ""));
    if (!flags_.json) *console_.out << ToTable(flags_.workload, flags_.load, runs_.back().report) << std::flush;
    return absl::OkStatus();
  }

  absl::Status Search() {
    if (!flags_.json) *console_.out << GoodputHeader(flags_.search, *flags_.slo) << std::flush;
    const auto measure = [this](double rate) -> absl::StatusOr<Attainment> {
      BATON_RETURN_IF_ERROR(SetRate(rate));
      BATON_RETURN_IF_ERROR(Measure(absl::StrFormat("run %d at %.4g/s: ", runs_.size() + 1, rate)));
      const LoadReport& report = runs_.back().report;
      if (!flags_.json) *console_.out << GoodputRow(rate, report) << std::flush;
      return Attainment{.met = report.slo->met, .requests = report.slo->requests};
    };
    BATON_ASSIGN_OR_RETURN(search_, FindGoodput(flags_.search, measure));
    *console_.out << (flags_.json ? GoodputJson(flags_.search, *search_) + "\n"
                                  : GoodputSummary(flags_.search, *search_))
                  << std::flush;
    return absl::OkStatus();
  }

  // Writes the files that the flags name.
  absl::Status WriteFiles(ResultFile& aiperf, ResultFile& html) {
    if (!flags_.aiperf_file.empty()) {
      const HtmlRun& run = runs_.back();
      BATON_RETURN_IF_ERROR(aiperf.Write(ToAiperfJson(run.result, run.report,
                                                      {.benchmark_id = FreshCacheSalt(),
                                                       .start = started_,
                                                       .end = absl::Now(),
                                                       .was_cancelled = console_.interrupt->triggered()})));
    }
    if (flags_.html_file.empty()) return absl::OkStatus();
    return html.Write(ToHtml(
        {.target = flags_.target,
         .model = flags_.workload.model,
         .load = flags_.goodput ? GoodputHeadline(flags_.search, *flags_.slo) : LoadLine(flags_.workload, flags_.load),
         .time = started_,
         .attain = flags_.search.attain,
         .search = search_,
         .runs = std::move(runs_)}));
  }

  bool has_success() const { return has_success_; }

 private:
  // Sets the rate and the number of requests of the next run.
  absl::Status SetRate(double rate) {
    Workload& workload = flags_.workload;
    workload.rate = rate;
    workload.requests = wanted_requests_;
    if (flags_.run_time) {
      const double count = std::ceil(rate * absl::ToDoubleSeconds(*flags_.run_time));
      workload.requests = static_cast<int>(std::clamp(count, 1.0, double{kMaxTraceRequests}));
    }
    if (workload.trace)
      workload.requests = std::min<int>(workload.requests, static_cast<int>(workload.trace->requests.size()));
    if (flags_.load.warmup < workload.requests) return absl::OkStatus();
    return UsageError(absl::InvalidArgumentError(
        absl::StrCat("--warmup ", flags_.load.warmup, " leaves none of ", workload.requests, " requests to measure")));
  }

  // Makes one run with a salt and a seed of its own, and prints its JSON line if asked.
  absl::Status Measure(const std::string& what) {
    Workload& workload = flags_.workload;
    if (!flags_.reuse_cache) workload.cache_salt = FreshCacheSalt();
    workload.seed = first_seed_ + number_++;
    HtmlRun run = {
        .rate = flags_.load.concurrency == 0 && workload.arrivals != ArrivalProcess::kTrace ? workload.rate : 0,
        .result = {},
        .report = {},
        .workers = {}};
    {
      std::optional<StatusSampler> sampler;
      if (bench_.client && !flags_.html_file.empty()) sampler.emplace(*bench_.client);
      RunProgress progress;
      std::optional<Ticker> display;
      if (console_.err_is_terminal) display.emplace(absl::Milliseconds(250), [&] { Show(what, progress); });
      run.result = GenerateLoad(*bench_.target, workload, flags_.load, *console_.interrupt, &progress);
      display.reset();
      if (console_.err_is_terminal) *console_.err << "\r\033[K" << std::flush;
      if (sampler) run.workers = sampler->Take();
    }
    run.report = MakeReport(run.result, flags_.slo);
    has_success_ = has_success_ || run.report.completed > 0;
    if (flags_.json) {
      *console_.out << ToJson(flags_.target, workload, flags_.load, run.report) << "\n" << std::flush;
    }
    // Only the files need every request of every run.
    if (flags_.html_file.empty() && flags_.aiperf_file.empty()) run.result = {};
    runs_.push_back(std::move(run));
    return console_.interrupt->triggered() ? absl::CancelledError("interrupted") : absl::OkStatus();
  }

  // Redraws the line on the terminal, cut at the right edge.
  void Show(const std::string& what, const RunProgress& progress) const {
    *console_.err << "\r\033[?7l" << what << ProgressLine(progress.Take()) << "\033[K\033[?7h" << std::flush;
  }

  BenchServeFlags& flags_;
  const Console& console_;
  BenchTarget bench_;
  const uint64_t first_seed_;
  const absl::Time started_ = absl::Now();
  uint64_t number_ = 0;  // of runs
  int wanted_requests_ = 0;
  bool has_success_ = false;
  std::optional<GoodputResult> search_;
  std::vector<HtmlRun> runs_;
};

absl::Status RunBenchServe(BenchServeFlags& flags, const Console& console) {
  BATON_RETURN_IF_ERROR(CompleteFlags(flags));
  BATON_ASSIGN_OR_RETURN(ResultFile aiperf, ResultFile::Open(flags.aiperf_file));
  BATON_ASSIGN_OR_RETURN(ResultFile html, ResultFile::Open(flags.html_file));
  BATON_ASSIGN_OR_RETURN(BenchTarget target, ConnectBenchTarget(flags, console));
  Bench bench(flags, console, std::move(target));
  BATON_RETURN_IF_ERROR(bench.Prepare());
  absl::Status status;
  if (flags.goodput) {
    status = bench.Search();
  } else {
    for (int number = 0; number < flags.runs && status.ok(); ++number) status = bench.RunOnce(number);
  }
  if (!status.ok()) return status;
  BATON_RETURN_IF_ERROR(bench.WriteFiles(aiperf, html));
  // Failed requests are a result, too, for instance of an overload. Without a success there is no result.
  return bench.has_success() ? absl::OkStatus() : absl::UnavailableError("no request succeeded");
}

}  // namespace

Command BenchServeCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<BenchServeFlags>();
  AddBenchServeFlags(command, flags.get());
  return [flags, &console] { return RunBenchServe(*flags, console); };
}

}  // namespace baton

// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/report/answer_text.h"
#include "cli/report/trace_report.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct TraceFlags {
  std::string target = std::string(kDefaultTarget);
  std::string id;
  std::string perfetto;
  bool json = false;
};

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (file) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("--perfetto ", path, ": cannot be written: ", std::generic_category().message(errno)));
}

absl::Status RunTrace(const TraceFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  BATON_ASSIGN_OR_RETURN(const v1::Trace trace, client->GetTrace(flags.id, kCallTimeout));
  if (!flags.perfetto.empty()) BATON_RETURN_IF_ERROR(WriteFile(flags.perfetto, PerfettoOf(trace)));
  *console.out << (flags.json ? absl::StrCat(ToJsonLine(trace), "\n") : TimelineOf(trace)) << std::flush;
  return absl::OkStatus();
}

}  // namespace

Command TraceCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<TraceFlags>();
  command.add_option("ID", flags->id, "request id, W3C trace id or request label of a recent request")->required();
  AddTarget(command, &flags->target);
  command.add_option("--perfetto", flags->perfetto, "also write a file for ui.perfetto.dev");
  command.add_flag("--json", flags->json, "print one JSON line");
  return [flags, &console] { return RunTrace(*flags, console); };
}

}  // namespace baton

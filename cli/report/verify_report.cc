// SPDX-License-Identifier: Apache-2.0
#include "cli/report/verify_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/report/answer_text.h"
#include "cli/report/table.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

VerifyCounts CountsOf(const std::map<VerifyCheck, VerifyCounts>& checks, VerifyCheck check) {
  const auto found = checks.find(check);
  return found == checks.end() ? VerifyCounts{} : found->second;
}

VerifyCounts Sum(const std::map<VerifyCheck, VerifyCounts>& checks) {
  VerifyCounts sum;
  for (const auto& [_, counts] : checks) {
    sum.equal += counts.equal;
    sum.different += counts.different;
    sum.failed += counts.failed;
    sum.not_sent += counts.not_sent;
  }
  return sum;
}

std::vector<std::string> Cells(const VerifyCounts& counts) {
  return {absl::StrCat(counts.runs()), absl::StrCat(counts.equal), absl::StrCat(counts.different),
          absl::StrCat(counts.failed)};
}

std::vector<std::string> Row(const std::string& name, const VerifyCounts& counts, const std::string& note) {
  std::vector<std::string> row = {name};
  for (std::string& cell : Cells(counts)) row.push_back(std::move(cell));
  row.push_back(note);
  return row;
}

std::string NoteOf(const VerifyCounts& counts, const std::string& not_run) {
  if (!not_run.empty()) return absl::StrCat("not run: ", not_run);
  return counts.not_sent == 0 ? "" : absl::StrCat(counts.not_sent, " not sent: the time was over");
}

std::string NotRun(const VerifiedGroup& group, VerifyCheck check) {
  const auto found = group.not_run.find(check);
  return found == group.not_run.end() ? "" : found->second;
}

std::string Chosen(size_t chosen, size_t possible, const std::string& noun) {
  return chosen == possible ? Count(possible, noun) : absl::StrCat(chosen, " of ", Count(possible, noun));
}

std::string DifferenceText(const VerifyMismatch& mismatch) {
  return absl::StrCat("first difference: ", NameOf(mismatch.check), ", prompt ", mismatch.prompt, ", on ",
                      mismatch.path, ": ", ToText(mismatch.difference), "\n  expected is what ", mismatch.agreeing,
                      " of ", mismatch.asked, " answers say, ", mismatch.expected_from, " among them\n");
}

std::string GroupText(const VerifiedGroup& verified) {
  const WorkerGroup& group = verified.group;
  std::string text = absl::StrCat("model ", group.model, ", numerics id ", group.numerics_id, ": ",
                                  Chosen(group.pairs.size(), group.possible_pairs, "pair"), ", ",
                                  Chosen(group.migrations.size(), group.possible_migrations, "migration"), "\n\n");
  Table checks({"CHECK", "RUNS", "EQUAL", "DIFFERENT", "FAILED", "NOTE"});
  for (const VerifyCheck check : kVerifyChecks) {
    const VerifyCounts counts = CountsOf(verified.checks, check);
    checks.AddRow(Row(NameOf(check), counts, NoteOf(counts, NotRun(verified, check))));
  }
  absl::StrAppend(&text, checks.ToString(), "\n");
  Table paths({"PATH", "RUNS", "EQUAL", "DIFFERENT", "FAILED", "NOTE"});
  for (const auto& [path, by_check] : verified.paths) {
    const VerifyCounts counts = Sum(by_check);
    paths.AddRow(Row(path, counts, NoteOf(counts, "")));
  }
  if (!verified.paths.empty()) absl::StrAppend(&text, paths.ToString(), "\n");
  if (verified.first_difference) absl::StrAppend(&text, DifferenceText(*verified.first_difference));
  if (const auto& failure = verified.first_failure) {
    absl::StrAppend(&text, "first failure: ", NameOf(failure->check), ", prompt ", failure->prompt, ", on ",
                    failure->path, ": ", failure->reason, "\n");
  }
  if (verified.first_difference || verified.first_failure) absl::StrAppend(&text, "\n");
  return text;
}

// Models that are served with several numerics ids.
std::string SeveralIds(const VerifyResult& result) {
  std::map<std::string, int> ids;
  for (const VerifiedGroup& group : result.groups) ++ids[group.group.model];
  std::string text;
  for (const auto& [model, count] : ids) {
    if (count < 2) continue;
    absl::StrAppend(&text, "model ", model, " has ", count,
                    " numerics ids: answers were compared within each, and the router never mixes them\n");
  }
  return text;
}

VerifyCounts SumOf(const VerifyResult& result) {
  VerifyCounts sum;
  for (const VerifiedGroup& group : result.groups) {
    const VerifyCounts counts = Sum(group.checks);
    sum.equal += counts.equal;
    sum.different += counts.different;
    sum.failed += counts.failed;
    sum.not_sent += counts.not_sent;
  }
  return sum;
}

Json CountsJson(const VerifyCounts& counts) {
  return {{"runs", counts.runs()},
          {"equal", counts.equal},
          {"different", counts.different},
          {"failed", counts.failed},
          {"not_sent", counts.not_sent}};
}

const char* NameOf(AnswerDifference::Kind kind) {
  switch (kind) {
    case AnswerDifference::Kind::kToken: return "token";
    case AnswerDifference::Kind::kLogprob: return "logprob";
    case AnswerDifference::Kind::kLength: return "length";
    case AnswerDifference::Kind::kText: return "text";
    case AnswerDifference::Kind::kFinish: return "finish";
  }
  return "?";
}

Json DifferenceJson(const VerifyMismatch& mismatch) {
  const AnswerDifference& difference = mismatch.difference;
  return {{"check", baton::NameOf(mismatch.check)},
          {"prompt", mismatch.prompt},
          {"path", mismatch.path},
          {"expected_from", mismatch.expected_from},
          {"agreeing", mismatch.agreeing},
          {"asked", mismatch.asked},
          {"kind", NameOf(difference.kind)},
          {"output_index", difference.output_index},
          {"expected", difference.expected},
          {"got", difference.got},
          {"request", Json::parse(ToJsonLine(mismatch.request))}};
}

Json GroupJson(const VerifiedGroup& verified) {
  const WorkerGroup& group = verified.group;
  Json json = {{"model", group.model},
               {"numerics_id", group.numerics_id},
               {"pairs", group.pairs.size()},
               {"possible_pairs", group.possible_pairs},
               {"migrations", group.migrations.size()},
               {"possible_migrations", group.possible_migrations},
               {"checks", Json::object()},
               {"paths", Json::object()}};
  for (const VerifyCheck check : kVerifyChecks) {
    Json& entry = json["checks"][NameOf(check)] = CountsJson(CountsOf(verified.checks, check));
    if (const std::string why = NotRun(verified, check); !why.empty()) entry["not_run"] = why;
  }
  for (const auto& [path, by_check] : verified.paths) {
    for (const auto& [check, counts] : by_check) json["paths"][path][NameOf(check)] = CountsJson(counts);
  }
  if (verified.first_difference) json["first_difference"] = DifferenceJson(*verified.first_difference);
  if (const auto& failure = verified.first_failure) {
    json["first_failure"] = {{"check", NameOf(failure->check)},
                             {"prompt", failure->prompt},
                             {"path", failure->path},
                             {"reason", failure->reason}};
  }
  return json;
}

}  // namespace

std::string ToText(const VerifyResult& result, bool strict) {
  std::string text;
  for (const VerifiedGroup& group : result.groups) absl::StrAppend(&text, GroupText(group));
  absl::StrAppend(&text, SeveralIds(result));
  const VerifyCounts sum = SumOf(result);
  const char* verdict = Passed(result, strict) ? "equal: " : "not proven equal: ";
  absl::StrAppendFormat(&text, "%s%d of %s as expected, %d different, %d failed, in %.1f s\n", verdict, sum.equal,
                        Count(sum.runs(), "answer"), sum.different, sum.failed, absl::ToDoubleSeconds(result.took));
  return text;
}

std::string ToJson(const std::string& target, const VerifyResult& result, bool strict) {
  Json json = {{"target", target},
               {"passed", Passed(result, strict)},
               {"seconds", absl::ToDoubleSeconds(result.took)},
               {"groups", Json::array()}};
  for (const VerifiedGroup& group : result.groups) json["groups"].push_back(GroupJson(group));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton

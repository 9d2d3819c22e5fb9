// SPDX-License-Identifier: Apache-2.0
#include "cli/report/answer_text.h"

#include <google/protobuf/util/json_util.h>

#include <iterator>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/strings.h"
#include "text/utf8.h"

namespace baton {
namespace {

std::string Milliseconds(double seconds) { return absl::StrFormat("%.1f ms", seconds * 1e3); }

std::string Cached(const v1::Usage& usage) {
  return usage.cached_prompt_tokens() == 0 ? "" : absl::StrCat(" (", usage.cached_prompt_tokens(), " cached)");
}

std::string Served(const v1::AttemptInfo& attempt) {
  if (attempt.prefill_worker().empty()) {
    return absl::StrCat("no KV handed over, prefilled and decoded by ", attempt.decode_worker());
  }
  if (attempt.kv_bytes() == 0) {
    return absl::StrCat("no KV handed over, ", attempt.prefill_worker(), " -> ", attempt.decode_worker());
  }
  return absl::StrCat(HumanBytes(attempt.kv_bytes()), " of KV handed over by ", attempt.transport(), ", ",
                      attempt.prefill_worker(), " -> ", attempt.decode_worker());
}

// Returns a token's bytes as a quoted word of printable characters.
std::string Quoted(const v1::TokenLogprob& token) {
  std::string storage;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(ToAbsl(RepairUtf8(token.token(), storage))), "\"");
}

}  // namespace

std::string Count(uint64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string HumanBytes(uint64_t count) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (count < 1024) return absl::StrCat(count, " B");
  double value = static_cast<double>(count) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string SummaryLine(const v1::Finish& finish) {
  std::string line =
      absl::StrCat("TTFT ", Milliseconds(finish.timings().ttft_seconds()), ", TPOT ",
                   Milliseconds(finish.timings().tpot_seconds()), ", ", finish.usage().prompt_tokens(), " prompt",
                   Cached(finish.usage()), " + ", Count(finish.usage().completion_tokens(), "output token"));
  if (!finish.request_id().empty()) absl::StrAppend(&line, ", request ", finish.request_id());
  if (finish.attempts().empty()) return line;
  absl::StrAppend(&line, ", ", Served(*finish.attempts().rbegin()));
  if (finish.attempts_size() > 1) {
    std::vector<std::string> causes;
    for (int i = 0; i + 1 < finish.attempts_size(); ++i) causes.push_back(finish.attempts(i).ended_by());
    absl::StrAppend(&line, ", ", finish.attempts_size(), " attempts (", absl::StrJoin(causes, ", "), ")");
  }
  return line;
}

std::string LogprobLines(const v1::Chunk& chunk) {
  std::string lines;
  for (int i = 0; i < chunk.logprobs_size(); ++i) {
    const v1::TokenLogprobs& token = chunk.logprobs(i);
    absl::StrAppendFormat(&lines, "%6d %-16s %9.4f ", chunk.output_index() + i, Quoted(token.chosen()),
                          token.chosen().logprob());
    for (const v1::TokenLogprob& other : token.top()) {
      absl::StrAppendFormat(&lines, " %s %.4f", Quoted(other), other.logprob());
    }
    lines += '\n';
  }
  return lines;
}

std::string ToJsonLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // The conversion fails only for well-known types that have no JSON form. The API has no such fields.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  std::string storage;
  return std::string(RepairUtf8(json, storage));
}

}  // namespace baton

// SPDX-License-Identifier: Apache-2.0
#include "cli/load/trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/file.h"

namespace baton {
namespace {

constexpr int kBlockTokens = 512;
constexpr absl::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr size_t kMaxTraceBytes = size_t{1} << 30;
constexpr int64_t kMaxTokens = 1 << 28;
constexpr int64_t kMaxMilliseconds = int64_t{365} * 24 * 3600 * 1000;

int Scaled(int64_t tokens, double scale) {
  return std::max(1, static_cast<int>(std::lround(static_cast<double>(tokens) * scale)));
}

absl::string_view Stripped(std::string_view line) {
  return absl::StripAsciiWhitespace(absl::string_view(line.data(), line.size()));
}

class TraceParser {
 public:
  TraceParser(std::string_view origin, const TraceOptions& options) : origin_(origin), options_(options) {}

  absl::StatusOr<TraceRequest> Parse(std::string_view line, int number) {
    number_ = number;
    return is_azure_ ? ParseAzure(line) : ParseMooncake(line);
  }
  // Returns whether the first line is a header.
  bool TakeHeader(std::string_view line) { return is_azure_ = Stripped(line) == kAzureHeader; }

 private:
  absl::StatusOr<TraceRequest> ParseAzure(std::string_view line) const {
    const std::vector<std::string> fields = absl::StrSplit(Stripped(line), ',');
    if (fields.size() != 3) return Expected("three fields, separated by commas");
    absl::Time time;
    std::string error;
    if (!absl::ParseTime("%Y-%m-%d %H:%M:%E*S", fields[0], &time, &error)) {
      return Expected("TIMESTAMP, such as 2023-11-16 18:15:46.68");
    }
    int64_t input = 0;
    int64_t output = 0;
    if (!absl::SimpleAtoi(fields[1], &input) || input < 1 || input > kMaxTokens) {
      return Expected(Concat("ContextTokens, a whole number from 1 to ", kMaxTokens));
    }
    if (!absl::SimpleAtoi(fields[2], &output) || output < 1 || output > kMaxTokens) {
      return Expected(Concat("GeneratedTokens, a whole number from 1 to ", kMaxTokens));
    }
    return TraceRequest{.arrival = (time - absl::UnixEpoch()) / options_.speed,
                        .input_tokens = Scaled(input, options_.length_scale),
                        .output_tokens = Scaled(output, options_.length_scale),
                        .blocks = {}};
  }

  absl::StatusOr<TraceRequest> ParseMooncake(std::string_view line) const {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return Expected("a line of JSON, an object");
    int64_t milliseconds = 0;
    int64_t input = 0;
    int64_t output = 0;
    BATON_RETURN_IF_ERROR(Number(json, "timestamp", 0, kMaxMilliseconds, milliseconds));
    BATON_RETURN_IF_ERROR(Number(json, "input_length", 1, kMaxTokens, input));
    BATON_RETURN_IF_ERROR(Number(json, "output_length", 1, kMaxTokens, output));
    TraceRequest request{.arrival = absl::Milliseconds(milliseconds) / options_.speed,
                         .input_tokens = Scaled(input, options_.length_scale),
                         .output_tokens = Scaled(output, options_.length_scale),
                         .blocks = {}};
    const auto blocks = json.find("hash_ids");
    if (blocks == json.end() || !blocks->is_array()) return Expected("hash_ids, an array");
    for (const nlohmann::json& block : *blocks) {
      if (!block.is_number_unsigned()) return Expected("hash_ids, whole numbers");
      request.blocks.push_back(block.get<uint64_t>());
    }
    if (static_cast<int64_t>(request.blocks.size()) != (input + kBlockTokens - 1) / kBlockTokens) {
      return Expected(Concat("one of hash_ids for each ", kBlockTokens, " of ", input, " tokens"));
    }
    return request;
  }

  absl::Status Expected(std::string_view what) const {
    return absl::InvalidArgumentError(Concat(origin_, ":", number_, ": expected ", what));
  }
  absl::Status Number(const nlohmann::json& json, const char* name, int64_t min, int64_t max, int64_t& value) const {
    const auto field = json.find(name);
    if (field != json.end() && field->is_number_integer()) {
      value = field->get<int64_t>();
      if (value >= min && value <= max) return absl::OkStatus();
    }
    return Expected(Concat(name, ", a whole number from ", min, " to ", max));
  }

  const std::string origin_;
  const TraceOptions options_;
  int number_ = 0;
  bool is_azure_ = false;
};

}  // namespace

absl::StatusOr<Trace> ParseTrace(std::string_view text, std::string_view origin, const TraceOptions& options) {
  Trace trace;
  trace.block_tokens = Scaled(kBlockTokens, options.length_scale);
  TraceParser parser(origin, options);
  int number = 0;
  while (!text.empty() && static_cast<int>(trace.requests.size()) < options.max_requests) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (++number == 1 && parser.TakeHeader(line)) continue;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    BATON_ASSIGN_OR_RETURN(trace.requests.emplace_back(), parser.Parse(line, number));
  }
  if (trace.requests.empty()) return absl::InvalidArgumentError(Concat(origin, ": expected a request a line"));
  std::stable_sort(trace.requests.begin(), trace.requests.end(),
                   [](const TraceRequest& a, const TraceRequest& b) { return a.arrival < b.arrival; });
  const absl::Duration first = trace.requests.front().arrival;
  for (TraceRequest& request : trace.requests) request.arrival -= first;
  return trace;
}

int FitTrace(Trace& trace, TooLong treatment, int max_tokens) {
  const auto is_too_long = [max_tokens](const TraceRequest& request) {
    return int64_t{request.input_tokens} + request.output_tokens > max_tokens;
  };
  const auto found = static_cast<int>(std::ranges::count_if(trace.requests, is_too_long));
  if (treatment == TooLong::kDrop) std::erase_if(trace.requests, is_too_long);
  if (treatment == TooLong::kCut) {
    for (TraceRequest& request : trace.requests) {
      request.output_tokens = std::min(request.output_tokens, std::max(max_tokens - 1, 1));
      request.input_tokens = std::min(request.input_tokens, std::max(max_tokens - request.output_tokens, 1));
    }
  }
  return found;
}

absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& path, const TraceOptions& options) {
  BATON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxTraceBytes));
  return ParseTrace(text, path.string(), options);
}

}  // namespace baton

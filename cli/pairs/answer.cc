// SPDX-License-Identifier: Apache-2.0
#include "cli/pairs/answer.h"

#include <algorithm>
#include <bit>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace baton {
namespace {

ComparedLogprob ToCompared(const v1::TokenLogprob& logprob) {
  return {logprob.token_id(), std::bit_cast<uint32_t>(logprob.logprob())};
}

std::string Words(const ComparedLogprob& logprob) {
  return absl::StrFormat("%d %.9g (bits %08x)", logprob.token_id, std::bit_cast<float>(logprob.bits), logprob.bits);
}

std::string Words(const std::vector<ComparedLogprob>& logprobs, size_t index) {
  return index < logprobs.size() ? Words(logprobs[index]) : "none";
}

// Returns the text from shortly before `at`, quoted.
std::string Excerpt(const std::string& text, size_t at) {
  constexpr size_t kBefore = 16;
  constexpr size_t kBytes = 48;
  const size_t begin = at - std::min(at, kBefore);
  return absl::StrCat("\"", absl::CHexEscape(text.substr(begin, kBytes)), "\"");
}

std::string Ending(const ComparedAnswer& answer) {
  return absl::StrCat(v1::FinishReason_Name(answer.reason), answer.stopped_by.empty() ? "" : " by ", answer.stopped_by);
}

}  // namespace

void ComparedAnswer::Add(const v1::Chunk& chunk) {
  text += chunk.text();
  token_ids.insert(token_ids.end(), chunk.token_ids().begin(), chunk.token_ids().end());
  for (const v1::TokenLogprobs& token : chunk.logprobs()) {
    std::vector<ComparedLogprob>& entry = logprobs.emplace_back();
    entry.push_back(ToCompared(token.chosen()));
    for (const v1::TokenLogprob& top : token.top()) entry.push_back(ToCompared(top));
  }
}

void ComparedAnswer::Add(const v1::Finish& finish) {
  reason = finish.reason();
  if (finish.has_stop_string()) stopped_by = absl::StrCat("\"", absl::CHexEscape(finish.stop_string()), "\"");
  if (finish.has_stop_token_id()) stopped_by = absl::StrCat("token ", finish.stop_token_id());
}

std::optional<AnswerDifference> FirstDifference(const ComparedAnswer& expected, const ComparedAnswer& got) {
  using Kind = AnswerDifference::Kind;
  const size_t common = std::min(expected.token_ids.size(), got.token_ids.size());
  for (size_t i = 0; i < common; ++i) {
    if (expected.token_ids[i] != got.token_ids[i]) {
      return AnswerDifference{Kind::kToken, i, absl::StrCat(expected.token_ids[i]), absl::StrCat(got.token_ids[i])};
    }
    const std::vector<ComparedLogprob> none;
    const auto& wanted = i < expected.logprobs.size() ? expected.logprobs[i] : none;
    const auto& came = i < got.logprobs.size() ? got.logprobs[i] : none;
    for (size_t k = 0; k < std::max(wanted.size(), came.size()); ++k) {
      if (k < wanted.size() && k < came.size() && wanted[k] == came[k]) continue;
      return AnswerDifference{Kind::kLogprob, i, Words(wanted, k), Words(came, k)};
    }
  }
  if (expected.token_ids.size() != got.token_ids.size()) {
    return AnswerDifference{Kind::kLength, common, absl::StrCat(expected.token_ids.size()),
                            absl::StrCat(got.token_ids.size())};
  }
  if (expected.text != got.text) {
    const auto differs = std::ranges::mismatch(expected.text, got.text);
    const auto at = static_cast<size_t>(differs.in1 - expected.text.begin());
    return AnswerDifference{Kind::kText, 0, Excerpt(expected.text, at), Excerpt(got.text, at)};
  }
  if (expected != got) return AnswerDifference{Kind::kFinish, 0, Ending(expected), Ending(got)};
  return std::nullopt;
}

std::string ToText(const AnswerDifference& difference) {
  std::string rest = absl::StrCat(difference.got, ", expected ", difference.expected);
  switch (difference.kind) {
    case AnswerDifference::Kind::kToken: return absl::StrCat("output token ", difference.output_index, " is ", rest);
    case AnswerDifference::Kind::kLogprob:
      return absl::StrCat("the logprob at output token ", difference.output_index, " is ", rest);
    case AnswerDifference::Kind::kLength: return absl::StrCat("the number of output tokens is ", rest);
    case AnswerDifference::Kind::kText: return absl::StrCat("the text is ", rest);
    case AnswerDifference::Kind::kFinish: return absl::StrCat("the end is ", rest);
  }
  return rest;
}

}  // namespace baton

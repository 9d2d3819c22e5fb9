// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/unigram.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/vocabulary.h"
#include "text/utf8.h"

namespace baton {
namespace {

// An unknown character scores this much less than the token with the lowest score. SentencePiece's value.
constexpr double kUnknownPenalty = 10;

uint64_t Edge(uint32_t node, char byte) { return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte); }

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenModel>> Unigram::Load(const JsonNode& json, const TokenDecoder& decoder,
                                                                Vocabulary& vocabulary) {
  if (decoder.is_byte_level()) return json.Unsupported("a Unigram model over bytes");
  std::unique_ptr<Unigram> model(new Unigram);  // the constructor is private
  BATON_ASSIGN_OR_RETURN(const JsonNode vocab, json.Get("vocab"));
  BATON_ASSIGN_OR_RETURN(const bool byte_fallback, json.GetBool("byte_fallback", false));
  BATON_RETURN_IF_ERROR(model->LoadVocabulary(vocab, decoder, byte_fallback, vocabulary));
  BATON_RETURN_IF_ERROR(model->FindUnknown(json));
  return model;
}

absl::Status Unigram::LoadVocabulary(const JsonNode& json, const TokenDecoder& decoder, bool byte_fallback,
                                     Vocabulary& vocabulary) {
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, json.Items());
  if (items.empty()) return json.Expected("at least one token");
  byte_tokens_.fill(kNone);
  token_at_.assign(1, kNone);
  scores_.reserve(items.size());
  for (size_t id = 0; id < items.size(); ++id) {
    const nlohmann::json& item = items[id].value();
    const bool is_pair = item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_number();
    if (!is_pair) return items[id].Expected("[\"token\", score]");
    const std::string& word = item[0].get_ref<const std::string&>();
    scores_.push_back(item[1].get<double>());
    if (!std::isfinite(scores_.back())) {
      return absl::InvalidArgumentError(Concat(items[id].path(), "[1]: expected a finite score, got ", scores_.back()));
    }
    const absl::Status set = vocabulary.Set(static_cast<int64_t>(id), decoder.Bytes(word), false);
    if (!set.ok()) return absl::InvalidArgumentError(Concat(items[id].path(), ": ", set.message()));
    if (const auto byte = ByteOfFallbackToken(word); byte && byte_fallback) {
      byte_tokens_[*byte] = static_cast<TokenId>(id);
      continue;  // not in the trie: the literal text "<0xE2>" must not encode to the byte token
    }
    uint32_t node = 0;
    for (const char byte : word) {
      const auto [edge, is_new] = edges_.try_emplace(Edge(node, byte), static_cast<uint32_t>(token_at_.size()));
      node = edge->second;
      if (is_new) token_at_.push_back(kNone);
    }
    if (node != 0) token_at_[node] = static_cast<TokenId>(id);
  }
  unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
  return absl::OkStatus();
}

absl::Status Unigram::FindUnknown(const JsonNode& json) {
  const auto unknown = json.Find("unk_id");
  if (!unknown) return absl::OkStatus();
  BATON_ASSIGN_OR_RETURN(const int64_t id, unknown->Integer(0, static_cast<int64_t>(scores_.size()) - 1));
  unknown_token_ = static_cast<TokenId>(id);
  return absl::OkStatus();
}

void Unigram::Encode(std::string_view piece, std::vector<TokenId>& out) const {
  // ways[at] is the best split of the first `at` bytes: its score and its last token.
  struct Way {
    double score = 0;
    uint32_t from = 0;      // where the last token begins
    TokenId token = kNone;  // kNone for an unknown character
    bool exists = false;
  };
  std::vector<Way> ways(piece.size() + 1);
  ways[0].exists = true;
  const auto improve = [&](size_t to, double score, size_t from, TokenId token) {
    Way& way = ways[to];
    if (way.exists && score <= way.score) return;
    way = {.score = score, .from = static_cast<uint32_t>(from), .token = token, .exists = true};
  };
  for (size_t at = 0; at < piece.size();) {
    const size_t next = at + ReadUtf8(piece.substr(at)).length;
    bool known = false;  // whether the single character at `at` is a token
    uint32_t node = 0;
    for (size_t end = at; end < piece.size();) {
      const auto edge = edges_.find(Edge(node, piece[end]));
      if (edge == edges_.end()) break;
      node = edge->second;
      ++end;
      if (token_at_[node] == kNone) continue;
      improve(end, ways[at].score + scores_[token_at_[node]], at, token_at_[node]);
      known = known || end == next;
    }
    if (!known) improve(next, ways[at].score + unknown_score_, at, kNone);
    at = next;
  }

  std::vector<std::pair<uint32_t, uint32_t>> cuts;  // [from, to) of each token, last token first
  for (auto at = static_cast<uint32_t>(piece.size()); at > 0; at = ways[at].from) cuts.emplace_back(ways[at].from, at);
  for (size_t i = cuts.size(); i-- > 0;) {
    if (const TokenId token = ways[cuts[i].second].token; token != kNone) {
      out.push_back(token);
      continue;
    }
    const uint32_t begin = cuts[i].first;
    while (i > 0 && ways[cuts[i - 1].second].token == kNone) --i;
    AddUnknown(piece.substr(begin, cuts[i].second - begin), out);
  }
}

void Unigram::AddUnknown(std::string_view text, std::vector<TokenId>& out) const {
  const auto token_of = [this](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
  if (std::all_of(text.begin(), text.end(), [&](char byte) { return token_of(byte) != kNone; })) {
    for (const char byte : text) out.push_back(token_of(byte));
  } else if (unknown_token_ != kNone) {
    out.push_back(unknown_token_);
  }
}

}  // namespace baton

// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/added_tokens.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pattern.h"
#include "text/tokenizer/vocabulary.h"
#include "text/utf8.h"

namespace baton {
namespace {

uint64_t Edge(int node, char byte) { return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte); }

// `text` must be valid UTF-8 and not empty.
std::string_view LastCharacter(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

std::string_view FirstCharacter(std::string_view text) { return text.substr(0, ReadUtf8(text).length); }

size_t WhitespaceAtEnd(std::string_view text) {
  const size_t size = text.size();
  while (!text.empty()) {
    const std::string_view last = LastCharacter(text);
    if (!IsWhiteSpace(ReadUtf8(last).code_point)) break;
    text.remove_suffix(last.size());
  }
  return size - text.size();
}

size_t WhitespaceAtStart(std::string_view text) {
  const size_t size = text.size();
  while (!text.empty()) {
    const Utf8Unit unit = ReadUtf8(text);
    if (!IsWhiteSpace(unit.code_point)) break;
    text.remove_prefix(unit.length);
  }
  return size - text.size();
}

absl::StatusOr<AddedToken> LoadToken(const JsonNode& json) {
  AddedToken token;
  BATON_ASSIGN_OR_RETURN(const int64_t id, json.GetInteger("id"));
  BATON_ASSIGN_OR_RETURN(token.content, json.GetString("content"));
  BATON_ASSIGN_OR_RETURN(token.special, json.GetBool("special", false));
  BATON_ASSIGN_OR_RETURN(token.normalized, json.GetBool("normalized", !token.special));
  BATON_ASSIGN_OR_RETURN(token.single_word, json.GetBool("single_word", false));
  BATON_ASSIGN_OR_RETURN(token.lstrip, json.GetBool("lstrip", false));
  BATON_ASSIGN_OR_RETURN(token.rstrip, json.GetBool("rstrip", false));
  if (id < 0 || id >= Vocabulary::kMaxSize) {
    return absl::InvalidArgumentError(
        Concat(json.path(), ".id: expected 0 to ", Vocabulary::kMaxSize - 1, ", got ", id));
  }
  if (token.content.empty()) {
    return absl::InvalidArgumentError(Concat(json.path(), ".content: expected the token's text, got \"\""));
  }
  token.id = static_cast<TokenId>(id);
  return token;
}

}  // namespace

absl::StatusOr<AddedTokenMatcher> AddedTokenMatcher::Create(std::vector<AddedToken> tokens) {
  AddedTokenMatcher matcher;
  matcher.tokens_ = std::move(tokens);
  matcher.token_at_.assign(1, -1);
  matcher.starts_token_.assign(256, false);
  bool any_single_word = false;
  for (size_t i = 0; i < matcher.tokens_.size(); ++i) {
    const AddedToken& token = matcher.tokens_[i];
    any_single_word |= token.single_word;
    matcher.starts_token_[static_cast<unsigned char>(token.content[0])] = true;
    int node = 0;
    for (const char byte : token.content) {
      const auto [edge, is_new] =
          matcher.edges_.try_emplace(Edge(node, byte), static_cast<int>(matcher.token_at_.size()));
      node = edge->second;
      if (is_new) matcher.token_at_.push_back(-1);
    }
    matcher.token_at_[node] = static_cast<int>(i);
  }
  if (any_single_word) {
    BATON_ASSIGN_OR_RETURN(matcher.word_character_,
                           Regex::Compile(Concat("[", kWordCharacters, "]"), Regex::Syntax::kPattern));
  }
  return matcher;
}

absl::Status AddedTokenMatcher::Split(Pieces& pieces) const {
  if (tokens_.empty()) return absl::OkStatus();
  return pieces.Refine([this](std::string_view text, std::vector<Piece>& out) { return SplitText(text, out); });
}

absl::Status AddedTokenMatcher::SplitText(std::string_view text, std::vector<Piece>& out) const {
  size_t done = 0;  // bytes of `text` that `out` covers
  size_t from = 0;
  while (const std::optional<Match> match = FindNext(text, from)) {
    from = match->end;
    const AddedToken& token = tokens_[match->token];
    if (token.single_word) {
      BATON_ASSIGN_OR_RETURN(const bool stands_alone, StandsAlone(text, *match));
      if (!stands_alone) continue;
    }
    size_t begin = match->begin;
    size_t end = match->end;
    // Not before `done`: the previous match may have taken the whitespace with rstrip.
    if (token.lstrip) begin = std::max(done, begin - WhitespaceAtEnd(text.substr(0, begin)));
    if (token.rstrip) end += WhitespaceAtStart(text.substr(end));
    if (done < begin) out.push_back({text.substr(done, begin - done)});
    out.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({text.substr(done)});
  return absl::OkStatus();
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::FindNext(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_token_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Match> longest;
    int node = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      const auto edge = edges_.find(Edge(node, text[i]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (token_at_[node] >= 0) longest = Match{begin, i + 1, token_at_[node]};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

absl::StatusOr<bool> AddedTokenMatcher::StandsAlone(std::string_view text, const Match& match) const {
  if (match.begin > 0) {
    BATON_ASSIGN_OR_RETURN(const bool adjoins, IsWordCharacter(LastCharacter(text.substr(0, match.begin))));
    if (adjoins) return false;
  }
  if (match.end < text.size()) {
    BATON_ASSIGN_OR_RETURN(const bool adjoins, IsWordCharacter(FirstCharacter(text.substr(match.end))));
    if (adjoins) return false;
  }
  return true;
}

absl::StatusOr<bool> AddedTokenMatcher::IsWordCharacter(std::string_view character) const {
  Regex::Matcher matcher(*word_character_);
  BATON_ASSIGN_OR_RETURN(const auto found, matcher.Find(character, 0));
  return found.has_value();
}

AddedTokens::AddedTokens(AddedTokenMatcher raw, AddedTokenMatcher normalized,
                         absl::flat_hash_map<std::string, TokenId> ids)
    : raw_(std::move(raw)), normalized_(std::move(normalized)), ids_(std::move(ids)) {}

absl::StatusOr<AddedTokens> AddedTokens::Load(const std::optional<JsonNode>& json, const Normalizer* normalizer,
                                              Vocabulary& vocabulary) {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  absl::flat_hash_map<std::string, TokenId> ids;
  std::vector<JsonNode> items;
  if (json) {
    BATON_ASSIGN_OR_RETURN(items, json->Items());
  }
  for (const JsonNode& item : items) {
    BATON_ASSIGN_OR_RETURN(AddedToken token, LoadToken(item));
    if (!ids.emplace(token.content, token.id).second) {
      return absl::InvalidArgumentError(
          Concat(item.path(), ".content: expected a new token, got '", token.content, "' again"));
    }
    BATON_RETURN_IF_ERROR(vocabulary.Set(token.id, token.content, token.special));
    if (token.normalized && normalizer != nullptr) {
      std::deque<std::string> storage;
      BATON_ASSIGN_OR_RETURN(const std::string_view content, normalizer->Apply(token.content, storage));
      token.content = std::string(content);
    }
    (token.normalized ? normalized : raw).push_back(std::move(token));
  }
  BATON_ASSIGN_OR_RETURN(AddedTokenMatcher raw_matcher, AddedTokenMatcher::Create(std::move(raw)));
  BATON_ASSIGN_OR_RETURN(AddedTokenMatcher normalized_matcher, AddedTokenMatcher::Create(std::move(normalized)));
  return AddedTokens(std::move(raw_matcher), std::move(normalized_matcher), std::move(ids));
}

absl::Status AddedTokens::Split(const Normalizer* normalizer, Pieces& pieces) const {
  BATON_RETURN_IF_ERROR(raw_.Split(pieces));
  if (normalizer != nullptr) {
    for (Piece& piece : pieces.list) {
      if (piece.token != Piece::kText) continue;
      BATON_ASSIGN_OR_RETURN(piece.text, normalizer->Apply(piece.text, pieces.changed));
    }
  }
  return normalized_.Split(pieces);
}

std::optional<TokenId> AddedTokens::IdOf(std::string_view content) const {
  const auto it = ids_.find(ToAbsl(content));
  return it == ids_.end() ? std::nullopt : std::optional<TokenId>(it->second);
}

}  // namespace baton

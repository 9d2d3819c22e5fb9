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

// Returns whether no word character adjoins the part of `text` from `begin` to `end`.
bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  const auto is_word = [](std::string_view character) { return IsWordCharacter(ReadUtf8(character).code_point); };
  if (begin > 0 && is_word(LastCharacter(text.substr(0, begin)))) return false;
  return end == text.size() || !is_word(text.substr(end));
}

absl::StatusOr<AddedToken> LoadToken(const JsonNode& json) {
  AddedToken token;
  BATON_ASSIGN_OR_RETURN(const int64_t id, json.GetInteger("id", 0, Vocabulary::kMaxSize - 1));
  BATON_ASSIGN_OR_RETURN(token.content, json.GetString("content"));
  BATON_ASSIGN_OR_RETURN(token.special, json.GetBool("special", false));
  BATON_ASSIGN_OR_RETURN(token.normalized, json.GetBool("normalized", !token.special));
  BATON_ASSIGN_OR_RETURN(token.single_word, json.GetBool("single_word", false));
  BATON_ASSIGN_OR_RETURN(token.lstrip, json.GetBool("lstrip", false));
  BATON_ASSIGN_OR_RETURN(token.rstrip, json.GetBool("rstrip", false));
  if (token.content.empty()) {
    return absl::InvalidArgumentError(Concat(json.path(), ".content: expected the token's text, got \"\""));
  }
  token.id = static_cast<TokenId>(id);
  return token;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), token_at_(1, -1), starts_token_(256, false) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    starts_token_[static_cast<unsigned char>(token.content[0])] = true;
    int node = 0;
    for (const char byte : token.content) {
      const auto [edge, is_new] = edges_.try_emplace(Edge(node, byte), static_cast<int>(token_at_.size()));
      node = edge->second;
      if (is_new) token_at_.push_back(-1);
    }
    token_at_[node] = static_cast<int>(i);
  }
}

absl::Status AddedTokenMatcher::Split(Pieces& pieces) const {
  if (tokens_.empty()) return absl::OkStatus();
  return pieces.Refine([this](std::string_view text, std::vector<Piece>& out) {
    SplitText(text, out);
    return absl::OkStatus();
  });
}

void AddedTokenMatcher::SplitText(std::string_view text, std::vector<Piece>& out) const {
  size_t done = 0;  // bytes of `text` that `out` covers
  size_t from = 0;
  while (const std::optional<Match> match = FindNext(text, from)) {
    from = match->end;
    const AddedToken& token = tokens_[match->token];
    if (token.single_word && !StandsAlone(text, match->begin, match->end)) continue;
    size_t begin = match->begin;
    size_t end = match->end;
    // Not before `done`: the previous match may have taken the whitespace with rstrip.
    if (token.lstrip) begin = std::max(done, StripWhiteSpace(text.substr(0, begin), {.left = false}).size());
    if (token.rstrip) end = text.size() - StripWhiteSpace(text.substr(end), {.right = false}).size();
    if (done < begin) out.push_back({text.substr(done, begin - done)});
    out.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({text.substr(done)});
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
  return AddedTokens(AddedTokenMatcher(std::move(raw)), AddedTokenMatcher(std::move(normalized)), std::move(ids));
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

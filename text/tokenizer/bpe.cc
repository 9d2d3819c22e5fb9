// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/vocabulary.h"
#include "text/utf8.h"

namespace baton {
namespace {

// For shorter pieces a scan over all pairs is faster than a heap.
constexpr size_t kShortPieceBytes = 48;

constexpr uint32_t kNoMerge = UINT32_MAX;
constexpr TokenId kMergedAway = -1;  // the symbol is now part of its left neighbour

// SentencePiece's symbol for a space.
constexpr std::string_view kSpace = "\u2581";
constexpr char32_t kSpaceCodePoint = 0x2581;

uint64_t PairKey(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Byte-level vocabularies may lack tokens for the other bytes.
bool OccursInUtf8(int byte) { return byte != 0xC0 && byte != 0xC1 && byte < 0xF5; }

absl::Status RefuseUnsupported(const JsonNode& json) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const auto field = json.Find(key);
    if (!field) continue;
    BATON_ASSIGN_OR_RETURN(const std::string_view affix, field->String());
    if (!affix.empty()) return field->Unsupported("an affix");
  }
  if (const auto dropout = json.Find("dropout"); dropout && dropout->value() != 0) {
    return dropout->Unsupported("dropout");
  }
  return absl::OkStatus();
}

// Reads "left right" or ["left", "right"].
absl::StatusOr<std::pair<std::string, std::string>> ReadMerge(const JsonNode& json) {
  if (json.value().is_string()) {
    const std::string& text = json.value().get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  } else if (json.value().is_array() && json.value().size() == 2 && json.value()[0].is_string() &&
             json.value()[1].is_string()) {
    return std::pair(json.value()[0].get<std::string>(), json.value()[1].get<std::string>());
  }
  return json.Expected("\"left right\" or [\"left\", \"right\"]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenModel>> Bpe::Load(const JsonNode& json, const TokenDecoder& decoder,
                                                            Vocabulary& vocabulary) {
  BATON_RETURN_IF_ERROR(RefuseUnsupported(json));
  BATON_ASSIGN_OR_RETURN(const bool ignore_merges, json.GetBool("ignore_merges", false));

  std::unique_ptr<Bpe> bpe(new Bpe);  // the constructor is private
  IdsByWord ids;
  BATON_ASSIGN_OR_RETURN(const JsonNode vocab, json.Get("vocab"));
  BATON_RETURN_IF_ERROR(bpe->LoadVocabulary(vocab, decoder, vocabulary, ids));
  bpe->over_bytes_ = decoder.is_byte_level();
  BATON_RETURN_IF_ERROR(bpe->over_bytes_ ? bpe->FindByteTokens(json, ids) : bpe->FindCharacterTokens(json, ids));
  BATON_ASSIGN_OR_RETURN(const JsonNode merges, json.Get("merges"));
  BATON_RETURN_IF_ERROR(bpe->LoadMerges(merges, json.Find("merge_ranks"), ids));
  if (ignore_merges) bpe->separates_words_ = false;  // ignore_merges looks up whole pieces, not words
  bpe->FindWholePieces(vocabulary, ids, ignore_merges);
  return bpe;
}

absl::Status Bpe::LoadVocabulary(const JsonNode& json, const TokenDecoder& decoder, Vocabulary& vocabulary,
                                 IdsByWord& ids) {
  if (!json.value().is_object()) return json.Expected("an object that maps tokens to ids");
  ids.reserve(json.value().size());
  for (const auto& [word, id_json] : json.value().items()) {
    BATON_ASSIGN_OR_RETURN(const int64_t id, JsonNode(id_json, Concat(json.path(), "['", word, "']")).Integer());
    if (id >= 0 && id < vocabulary.size() && vocabulary.Contains(static_cast<TokenId>(id))) {
      return absl::InvalidArgumentError(
          Concat(json.path(), "['", word, "']: expected a unique id, got ", id, ", which another token has"));
    }
    const absl::Status set = vocabulary.Set(id, decoder.Bytes(word), false);
    if (!set.ok()) return absl::InvalidArgumentError(Concat(json.path(), "['", word, "']: ", set.message()));
    ids.emplace(word, static_cast<TokenId>(id));
  }
  return absl::OkStatus();
}

absl::Status Bpe::FindByteTokens(const JsonNode& json, const IdsByWord& ids) {
  BATON_ASSIGN_OR_RETURN(const bool byte_fallback, json.GetBool("byte_fallback", false));
  if (byte_fallback) return json.Unsupported("byte_fallback with a byte-level vocabulary");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string letter = AlphabetLetter(static_cast<unsigned char>(byte));
    const auto it = ids.find(letter);
    if (it == ids.end() && OccursInUtf8(byte)) {
      return json.Unsupported(Concat("a vocabulary without a token for every byte (no '", letter, "')"));
    }
    byte_tokens_[byte] = it == ids.end() ? 0 : it->second;
  }
  return absl::OkStatus();
}

absl::Status Bpe::FindCharacterTokens(const JsonNode& json, const IdsByWord& ids) {
  for (const auto& [word, id] : ids) {
    if (word.empty()) continue;
    const Utf8Unit unit = ReadUtf8(word);
    if (unit.length == word.size()) character_tokens_.emplace(unit.code_point, id);
  }
  BATON_ASSIGN_OR_RETURN(const bool byte_fallback, json.GetBool("byte_fallback", false));
  byte_tokens_.fill(kNone);
  for (int byte = 0; byte < 256 && byte_fallback; ++byte) {
    const auto it = ids.find(FallbackToken(static_cast<unsigned char>(byte)));
    if (it != ids.end()) byte_tokens_[byte] = it->second;
  }
  BATON_ASSIGN_OR_RETURN(fuses_unknown_, json.GetBool("fuse_unk", false));
  if (const auto unknown = json.Find("unk_token")) {
    BATON_ASSIGN_OR_RETURN(const std::string_view word, unknown->String());
    const auto it = ids.find(std::string(word));
    // Hugging Face ignores an unknown token that is only an added token.
    if (it != ids.end()) unknown_token_ = it->second;
  }
  return absl::OkStatus();
}

absl::Status Bpe::LoadMerges(const JsonNode& json, const std::optional<JsonNode>& ranks, const IdsByWord& ids) {
  if (!json.value().is_array()) return json.Expected("an array");
  if (ranks && (!ranks->value().is_array() || ranks->value().size() != json.value().size())) {
    return ranks->Expected(Concat("an array of ", json.value().size(), " numbers, one for each merge"));
  }
  merges_.reserve(json.value().size());
  separates_words_ = SeparatesWords();
  int64_t rank_before = 0;
  for (size_t i = 0; i < json.value().size(); ++i) {
    const JsonNode item(json.value()[i], Concat(json.path(), "[", i, "]"));
    BATON_ASSIGN_OR_RETURN(const auto pair, ReadMerge(item));
    TokenId token_ids[3];
    const std::string words[3] = {pair.first, pair.second, pair.first + pair.second};
    for (int k = 0; k < 3; ++k) {
      const auto it = ids.find(words[k]);
      if (it == ids.end()) {
        return absl::InvalidArgumentError(
            Concat(item.path(), ": expected tokens of the vocabulary, got '", words[k], "'"));
      }
      token_ids[k] = it->second;
    }
    auto rank = static_cast<int64_t>(i);
    if (ranks) {
      const JsonNode rank_json(ranks->value()[i], Concat(ranks->path(), "[", i, "]"));
      BATON_ASSIGN_OR_RETURN(rank, rank_json.Integer(rank_before, static_cast<int64_t>(i)));
      rank_before = rank;
    }
    if (pair.second.starts_with(kSpace) && !pair.first.ends_with(kSpace)) separates_words_ = false;
    merges_.insert_or_assign(PairKey(token_ids[0], token_ids[1]), Merge{static_cast<uint32_t>(rank), token_ids[2]});
  }
  return absl::OkStatus();
}

// Checks the conditions on the vocabulary; LoadMerges checks the merges. If unknown characters were dropped, a merge
// could join the spaces around them, across words.
bool Bpe::SeparatesWords() const {
  const bool keeps_all = unknown_token_ != kNone ||
                         std::all_of(byte_tokens_.begin(), byte_tokens_.end(), [](TokenId id) { return id != kNone; });
  return !over_bytes_ && keeps_all && character_tokens_.contains(kSpaceCodePoint);
}

void Bpe::FindWholePieces(const Vocabulary& vocabulary, const IdsByWord& ids, bool ignore_merges) {
  size_t total_bytes = 0;
  for (const auto& [word, id] : ids) total_bytes += std::max(word.size(), vocabulary.Bytes(id).size());
  whole_piece_bytes_.reserve(total_bytes);  // must not reallocate: the keys of whole_pieces_ point into it
  std::vector<TokenId> encoded;
  for (const auto& [word, id] : ids) {
    // The literal text "<0xE2>" must not encode to the byte token.
    if (over_bytes_ ? !BytesFromAlphabet(word) : word.empty() || ByteOfFallbackToken(word)) continue;
    const std::string_view bytes = over_bytes_ ? vocabulary.Bytes(id) : std::string_view(word);
    encoded.clear();
    if (!ignore_merges) EncodeByMerges(bytes, encoded);
    if (!ignore_merges && (encoded.size() != 1 || encoded[0] != id)) continue;
    const size_t offset = whole_piece_bytes_.size();
    whole_piece_bytes_ += bytes;
    whole_pieces_.emplace(absl::string_view(whole_piece_bytes_).substr(offset), id);
  }
}

size_t Bpe::InitialTokens(std::string_view piece, TokenId* tokens) const {
  if (over_bytes_) {
    for (size_t i = 0; i < piece.size(); ++i) tokens[i] = byte_tokens_[static_cast<unsigned char>(piece[i])];
    return piece.size();
  }
  size_t count = 0;
  bool after_unknown = false;
  for (size_t at = 0; at < piece.size();) {
    const Utf8Unit unit = ReadUtf8(piece.substr(at));
    const auto it = character_tokens_.find(unit.code_point);
    if (it != character_tokens_.end()) {
      tokens[count++] = it->second;
      after_unknown = false;
    } else {
      const size_t more = FallbackTokens(piece.substr(at, unit.length), tokens + count, after_unknown);
      after_unknown = more == 0 ? after_unknown : tokens[count] == unknown_token_;
      count += more;
    }
    at += unit.length;
  }
  return count;
}

// Writes the tokens of a character without a token: its byte tokens if all exist, otherwise the unknown token.
size_t Bpe::FallbackTokens(std::string_view character, TokenId* tokens, bool after_unknown) const {
  const bool has_bytes = std::all_of(character.begin(), character.end(), [this](char byte) {
    return byte_tokens_[static_cast<unsigned char>(byte)] != kNone;
  });
  if (has_bytes) {
    for (const char byte : character) *tokens++ = byte_tokens_[static_cast<unsigned char>(byte)];
    return character.size();
  }
  if (unknown_token_ == kNone || (after_unknown && fuses_unknown_)) return 0;
  *tokens = unknown_token_;
  return 1;
}

const Bpe::Merge* Bpe::FindMerge(TokenId left, TokenId right) const {
  const auto it = merges_.find(PairKey(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void Bpe::Encode(std::string_view piece, std::vector<TokenId>& out) const {
  if (piece.empty()) return;
  size_t begin = 0;
  if (separates_words_) {
    for (size_t at = piece.find(kSpace, 1); at != std::string_view::npos; at = piece.find(kSpace, at + 1)) {
      if (piece.substr(begin, at - begin).ends_with(kSpace)) continue;
      EncodeWord(piece.substr(begin, at - begin), out);
      begin = at;
    }
  }
  EncodeWord(piece.substr(begin), out);
}

void Bpe::EncodeWord(std::string_view word, std::vector<TokenId>& out) const {
  if (const auto it = whole_pieces_.find(ToAbsl(word)); it != whole_pieces_.end()) {
    out.push_back(it->second);
  } else {
    EncodeByMerges(word, out);
  }
}

void Bpe::EncodeByMerges(std::string_view piece, std::vector<TokenId>& out) const {
  if (piece.size() <= kShortPieceBytes) {
    EncodeShort(piece, out);
  } else {
    EncodeLong(piece, out);
  }
}

void Bpe::EncodeShort(std::string_view piece, std::vector<TokenId>& out) const {
  // ranks[i] is the rank of merging tokens i and i + 1.
  std::array<TokenId, kShortPieceBytes> tokens;
  std::array<uint32_t, kShortPieceBytes> ranks;
  size_t count = InitialTokens(piece, tokens.data());
  const auto rank_at = [&](size_t i) {
    if (i + 1 >= count) return kNoMerge;
    const Merge* merge = FindMerge(tokens[i], tokens[i + 1]);
    return merge == nullptr ? kNoMerge : merge->rank;
  };
  for (size_t i = 0; i < count; ++i) ranks[i] = rank_at(i);
  while (count > 1) {
    const size_t best = std::min_element(ranks.begin(), ranks.begin() + count) - ranks.begin();
    if (ranks[best] == kNoMerge) break;
    tokens[best] = FindMerge(tokens[best], tokens[best + 1])->result;
    std::copy(tokens.begin() + best + 2, tokens.begin() + count, tokens.begin() + best + 1);
    std::copy(ranks.begin() + best + 2, ranks.begin() + count, ranks.begin() + best + 1);
    --count;
    ranks[best] = rank_at(best);
    if (best > 0) ranks[best - 1] = rank_at(best - 1);
  }
  out.insert(out.end(), tokens.begin(), tokens.begin() + count);
}

void Bpe::EncodeLong(std::string_view piece, std::vector<TokenId>& out) const {
  struct Symbol {
    TokenId token;
    uint32_t previous;  // index of the left neighbour, or kEnd
    uint32_t next;      // index of the right neighbour, or kEnd
  };
  constexpr uint32_t kEnd = UINT32_MAX;
  std::vector<TokenId> start(piece.size());
  const auto size = static_cast<uint32_t>(InitialTokens(piece, start.data()));
  std::vector<Symbol> symbols(size);
  for (uint32_t i = 0; i < size; ++i) symbols[i] = {start[i], i == 0 ? kEnd : i - 1, i + 1 == size ? kEnd : i + 1};
  // A min-heap of candidates, rank << 32 | left symbol. A candidate is stale when its pair has changed since; then the
  // rank differs or the pair has no merge.
  std::vector<uint64_t> heap;
  heap.reserve(size);
  const auto merge_at = [&](uint32_t left) -> const Merge* {
    const Symbol& symbol = symbols[left];
    if (symbol.token == kMergedAway || symbol.next == kEnd) return nullptr;
    return FindMerge(symbol.token, symbols[symbol.next].token);
  };
  const auto add_candidate = [&](uint32_t left) {
    const Merge* merge = merge_at(left);
    if (merge != nullptr) heap.push_back(static_cast<uint64_t>(merge->rank) << 32 | left);
    return merge != nullptr;
  };
  for (uint32_t i = 0; i < size; ++i) add_candidate(i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto left = static_cast<uint32_t>(heap.back());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    const Merge* merge = merge_at(left);
    if (merge == nullptr || merge->rank != rank) continue;
    Symbol& symbol = symbols[left];
    Symbol& merged = symbols[symbol.next];
    symbol.token = merge->result;
    symbol.next = merged.next;
    merged.token = kMergedAway;
    if (symbol.next != kEnd) symbols[symbol.next].previous = left;
    if (add_candidate(left)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (symbol.previous != kEnd && add_candidate(symbol.previous)) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  }
  for (uint32_t i = 0; i < size; i = symbols[i].next) out.push_back(symbols[i].token);
}

}  // namespace baton

#include "engine/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/json_node.h"
#include "engine/tokenizer/vocabulary.h"

namespace baton {
namespace {

// Up to here scanning all pairs for the best one beats a heap.
constexpr size_t kShortPieceBytes = 48;

constexpr uint32_t kNoMerge = UINT32_MAX;
constexpr TokenId kGone = -1;  // merged into its left neighbour

uint64_t PairKey(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Bytes that never occur in UTF-8 need no token.
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
  BATON_ASSIGN_OR_RETURN(const bool byte_fallback, json.GetBool("byte_fallback", false));
  if (byte_fallback) return json.Unsupported("byte_fallback");
  return absl::OkStatus();
}

// A merge is written "left right" or ["left", "right"].
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
  return json.Expected("a merge, \"left right\" or [\"left\", \"right\"]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::Load(const JsonNode& json, Vocabulary& vocabulary) {
  BATON_ASSIGN_OR_RETURN(const std::string_view type, json.GetString("type"));
  if (type != "BPE") return json.Unsupported(Concat("model '", type, "'"));
  BATON_RETURN_IF_ERROR(RefuseUnsupported(json));
  BATON_ASSIGN_OR_RETURN(const bool ignore_merges, json.GetBool("ignore_merges", false));

  std::unique_ptr<Bpe> bpe(new Bpe);  // the constructor is private
  IdsByWord ids;
  BATON_ASSIGN_OR_RETURN(const JsonNode vocab, json.Get("vocab"));
  BATON_RETURN_IF_ERROR(bpe->LoadVocabulary(vocab, vocabulary, ids));
  BATON_ASSIGN_OR_RETURN(const JsonNode merges, json.Get("merges"));
  BATON_RETURN_IF_ERROR(bpe->LoadMerges(merges, ids));
  bpe->FindWholePieces(vocabulary, ids, ignore_merges);
  return bpe;
}

absl::Status Bpe::LoadVocabulary(const JsonNode& json, Vocabulary& vocabulary, IdsByWord& ids) {
  if (!json.value().is_object()) return json.Expected("an object of tokens and ids");
  ids.reserve(json.value().size());
  for (const auto& [word, id_json] : json.value().items()) {
    BATON_ASSIGN_OR_RETURN(const int64_t id, JsonNode(id_json, Concat(json.path(), "['", word, "']")).Integer());
    if (id >= 0 && id < vocabulary.size() && vocabulary.Contains(static_cast<TokenId>(id))) {
      return absl::InvalidArgumentError(Concat(json.path(), "['", word, "']: another token has id ", id));
    }
    const std::optional<std::string> bytes = BytesFromAlphabet(word);
    const absl::Status set = vocabulary.Set(id, bytes ? *bytes : word, false);
    if (!set.ok()) return absl::InvalidArgumentError(Concat(json.path(), "['", word, "']: ", set.message()));
    ids.emplace(word, static_cast<TokenId>(id));
  }
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

absl::Status Bpe::LoadMerges(const JsonNode& json, const IdsByWord& ids) {
  if (!json.value().is_array()) return json.Expected("an array");
  merges_.reserve(json.value().size());
  for (size_t i = 0; i < json.value().size(); ++i) {
    const JsonNode item(json.value()[i], Concat(json.path(), "[", i, "]"));
    BATON_ASSIGN_OR_RETURN(const auto pair, ReadMerge(item));
    TokenId token_ids[3];
    const std::string words[3] = {pair.first, pair.second, pair.first + pair.second};
    for (int k = 0; k < 3; ++k) {
      const auto it = ids.find(words[k]);
      if (it == ids.end()) {
        return absl::InvalidArgumentError(Concat(item.path(), ": '", words[k], "' is not in the vocabulary"));
      }
      token_ids[k] = it->second;
    }
    merges_.insert_or_assign(PairKey(token_ids[0], token_ids[1]), Merge{static_cast<uint32_t>(i), token_ids[2]});
  }
  return absl::OkStatus();
}

void Bpe::FindWholePieces(const Vocabulary& vocabulary, const IdsByWord& ids, bool ignore_merges) {
  size_t total_bytes = 0;
  for (const auto& [word, id] : ids) total_bytes += vocabulary.Bytes(id).size();
  whole_piece_bytes_.reserve(total_bytes);  // never reallocated: the keys point into it
  std::vector<TokenId> encoded;
  for (const auto& [word, id] : ids) {
    if (!BytesFromAlphabet(word)) continue;
    const std::string_view bytes = vocabulary.Bytes(id);
    encoded.clear();
    if (!ignore_merges) EncodeByMerges(bytes, encoded);
    if (!ignore_merges && (encoded.size() != 1 || encoded[0] != id)) continue;
    const size_t offset = whole_piece_bytes_.size();
    whole_piece_bytes_ += bytes;
    whole_pieces_.emplace(absl::string_view(whole_piece_bytes_).substr(offset), id);
  }
}

const Bpe::Merge* Bpe::FindMerge(TokenId left, TokenId right) const {
  const auto it = merges_.find(PairKey(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void Bpe::Encode(std::string_view piece, std::vector<TokenId>& out) const {
  if (piece.empty()) return;
  if (const auto it = whole_pieces_.find(ToAbsl(piece)); it != whole_pieces_.end()) {
    out.push_back(it->second);
  } else {
    EncodeByMerges(piece, out);
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
  // ranks[i] is that of the merge of tokens i and i + 1.
  std::array<TokenId, kShortPieceBytes> tokens;
  std::array<uint32_t, kShortPieceBytes> ranks;
  size_t count = piece.size();
  const auto rank_at = [&](size_t i) {
    if (i + 1 >= count) return kNoMerge;
    const Merge* merge = FindMerge(tokens[i], tokens[i + 1]);
    return merge == nullptr ? kNoMerge : merge->rank;
  };
  for (size_t i = 0; i < count; ++i) tokens[i] = byte_tokens_[static_cast<unsigned char>(piece[i])];
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
    uint32_t previous;  // indices of the neighbours; kNone at the ends
    uint32_t next;
  };
  constexpr uint32_t kNone = UINT32_MAX;
  const auto size = static_cast<uint32_t>(piece.size());
  std::vector<Symbol> symbols(size);
  for (uint32_t i = 0; i < size; ++i) {
    symbols[i] = {byte_tokens_[static_cast<unsigned char>(piece[i])], i == 0 ? kNone : i - 1,
                  i + 1 == size ? kNone : i + 1};
  }
  // Candidates, rank << 32 | left symbol: the smallest is the next merge. One is stale when its pair has changed since.
  std::vector<uint64_t> heap;
  heap.reserve(size);
  const auto merge_at = [&](uint32_t left) -> const Merge* {
    const Symbol& symbol = symbols[left];
    return symbol.token == kGone || symbol.next == kNone ? nullptr
                                                         : FindMerge(symbol.token, symbols[symbol.next].token);
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
    merged.token = kGone;
    if (symbol.next != kNone) symbols[symbol.next].previous = left;
    if (add_candidate(left)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (symbol.previous != kNone && add_candidate(symbol.previous)) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  }
  for (uint32_t i = 0; i != kNone; i = symbols[i].next) out.push_back(symbols[i].token);
}

}  // namespace baton

// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/digit_groups.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/metaspace.h"
#include "text/tokenizer/pattern.h"
#include "text/tokenizer/regex.h"
#include "text/utf8.h"

namespace baton {
namespace {

// The pattern of ByteLevel with use_regex, from GPT-2.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// How the matches of a Split become pieces. Names as in tokenizer.json.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Part {
  size_t begin;
  size_t end;
  bool is_match;
};

// Cuts `text` into matches and the parts between matches. `invert` swaps the two roles.
absl::Status FindParts(Regex::Matcher& matcher, std::string_view text, bool invert, std::vector<Part>& parts) {
  parts.clear();
  size_t done = 0;
  size_t from = 0;
  while (from <= text.size()) {
    BATON_ASSIGN_OR_RETURN(const std::optional<Regex::Span> match, matcher.Find(text, from));
    if (!match) break;
    if (match->begin > done) parts.push_back({done, match->begin, invert});
    if (match->end > match->begin) parts.push_back({match->begin, match->end, !invert});
    done = match->end;
    from = match->end;
    // An empty match splits the text at its position. Resume one code point later, to make progress.
    if (match->end == match->begin) from += from < text.size() ? ReadUtf8(text.substr(from)).length : 1;
  }
  if (done < text.size()) parts.push_back({done, text.size(), invert});
  return absl::OkStatus();
}

void Join(SplitBehavior behavior, std::vector<Part>& parts) {
  size_t kept = 0;
  for (const Part part : parts) {
    const bool follows_match = kept > 0 && parts[kept - 1].is_match;
    const bool follows_gap = kept > 0 && !parts[kept - 1].is_match;
    bool merge = false;
    switch (behavior) {
      case SplitBehavior::kIsolated: break;
      case SplitBehavior::kRemoved:
        if (part.is_match) continue;
        break;
      case SplitBehavior::kContiguous: merge = part.is_match ? follows_match : follows_gap; break;
      // In a run of matches, only the first match joins the part before.
      case SplitBehavior::kMergedWithPrevious: merge = part.is_match && follows_gap; break;
      // In a run of matches, only the last match joins the part after.
      case SplitBehavior::kMergedWithNext: merge = !part.is_match && follows_match; break;
    }
    if (merge) {
      parts[kept - 1] = {parts[kept - 1].begin, part.end, part.is_match};
    } else {
      parts[kept++] = part;
    }
  }
  parts.resize(kept);
}

class SplitPreTokenizer : public PreTokenizer {
 public:
  SplitPreTokenizer(Regex regex, SplitBehavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}

  absl::Status Split(Pieces& pieces) const override {
    Regex::Matcher matcher(regex_);
    std::vector<Part> parts;
    return pieces.Refine([&](std::string_view text, std::vector<Piece>& out) -> absl::Status {
      BATON_RETURN_IF_ERROR(FindParts(matcher, text, invert_, parts));
      Join(behavior_, parts);
      for (const Part& part : parts) out.push_back({text.substr(part.begin, part.end - part.begin)});
      return absl::OkStatus();
    });
  }

 private:
  const Regex regex_;
  const SplitBehavior behavior_;
  const bool invert_;
};

// Prepends a space to each piece that does not start with a space.
class PrefixSpacePreTokenizer : public PreTokenizer {
 public:
  absl::Status Split(Pieces& pieces) const override {
    for (Piece& piece : pieces.list) {
      if (piece.token != Piece::kText || piece.text.empty() || piece.text[0] == ' ') continue;
      piece.text = pieces.changed.emplace_back(Concat(" ", piece.text));
    }
    return absl::OkStatus();
  }
};

// Applies `step` after ByteLevel. In Hugging Face's tokenizers, a step after ByteLevel sees the text in the byte
// alphabet and may split within a character. Here the text stays UTF-8 until the model, so Split converts for the step.
class ByteAlphabetPreTokenizer : public PreTokenizer {
 public:
  // `step` may split and remove text, but not change it.
  explicit ByteAlphabetPreTokenizer(std::unique_ptr<PreTokenizer> step) : step_(std::move(step)) {}

  absl::Status Split(Pieces& pieces) const override {
    return pieces.Refine([&](std::string_view bytes, std::vector<Piece>& out) -> absl::Status {
      const std::string letters = AlphabetFromBytes(bytes);
      Pieces split{.list = {{letters}}, .changed = {}};
      BATON_RETURN_IF_ERROR(step_->Split(split));
      std::string_view rest = letters;
      for (const Piece& piece : split.list) {
        const size_t skipped = piece.text.data() - rest.data();  // bytes of letters that `step` removed
        bytes.remove_prefix(CountCodePoints(rest.substr(0, skipped)));
        const size_t length = CountCodePoints(piece.text);
        out.push_back({bytes.substr(0, length)});
        bytes.remove_prefix(length);
        rest.remove_prefix(skipped + piece.text.size());
      }
      return absl::OkStatus();
    });
  }

 private:
  const std::unique_ptr<PreTokenizer> step_;
};

// Handles spaces like SentencePiece: replaces each space, prepends a replacement if there is none, and with `split`
// cuts before each replacement.
class MetaspacePreTokenizer : public PreTokenizer {
 public:
  MetaspacePreTokenizer(const Metaspace& metaspace, bool split)
      : replacement_(metaspace.replacement), prepend_(metaspace.prepend), split_(split) {}

  absl::Status Split(Pieces& pieces) const override {
    for (size_t i = 0; i < pieces.list.size(); ++i) {
      Piece& piece = pieces.list[i];
      if (piece.token != Piece::kText || piece.text.empty()) continue;
      std::string text = absl::StrReplaceAll(ToAbsl(piece.text), {{" ", ToAbsl(replacement_)}});
      const bool prepends =
          prepend_ == Metaspace::Prepend::kAlways || (prepend_ == Metaspace::Prepend::kFirst && i == 0);
      if (prepends && !text.starts_with(replacement_)) text.insert(0, replacement_);
      piece.text = pieces.changed.emplace_back(std::move(text));
    }
    if (!split_) return absl::OkStatus();
    return pieces.Refine([&](std::string_view text, std::vector<Piece>& out) {
      size_t begin = 0;
      for (size_t at = text.find(replacement_, 1); at != std::string_view::npos; at = text.find(replacement_, at + 1)) {
        out.push_back({text.substr(begin, at - begin)});
        begin = at;
      }
      out.push_back({text.substr(begin)});
      return absl::OkStatus();
    });
  }

 private:
  const std::string replacement_;
  const Metaspace::Prepend prepend_;
  const bool split_;
};

absl::StatusOr<SplitBehavior> BehaviorFromName(const JsonNode& json) {
  BATON_ASSIGN_OR_RETURN(const std::string_view name, json.String());
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return json.Unsupported(Concat("behavior '", name, "'"));
}

// Builds a chain step by step.
struct Loader {
  std::vector<std::unique_ptr<PreTokenizer>> chain;
  bool has_byte_level = false;

  absl::Status Load(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const std::string_view type, json.GetString("type"));
    if (type == "Sequence") return LoadSequence(json);
    if (type == "Split") return LoadSplit(json);
    if (type == "Digits") return LoadDigits(json);
    if (type == "Punctuation") return LoadPunctuation(json);
    if (type == "Whitespace") {  // invert: the matches are the pieces
      return AddSplit(Concat("[", kWordCharacters, "]+|[^", kWordCharacters, "\\s]+"), SplitBehavior::kRemoved, true);
    }
    if (type == "WhitespaceSplit") return AddSplit("\\s+", SplitBehavior::kRemoved, false);
    if (has_byte_level) return json.Unsupported(Concat("pre-tokenizer '", type, "' after ByteLevel"));
    if (type == "Metaspace") return LoadMetaspace(json);
    if (type == "ByteLevel") return LoadByteLevel(json);
    return json.Unsupported(Concat("pre-tokenizer '", type, "'"));
  }

  absl::Status LoadSequence(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, json.GetItems("pretokenizers"));
    for (const JsonNode& item : items) {
      if (const auto nested = item.Find("type"); nested && nested->value() == "Sequence") {
        return item.Unsupported("a Sequence within a Sequence");
      }
      BATON_RETURN_IF_ERROR(Load(item));
    }
    return absl::OkStatus();
  }

  absl::Status LoadSplit(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const JsonNode pattern, json.Get("pattern"));
    BATON_ASSIGN_OR_RETURN(const JsonNode behavior_name, json.Get("behavior"));
    BATON_ASSIGN_OR_RETURN(const SplitBehavior behavior, BehaviorFromName(behavior_name));
    BATON_ASSIGN_OR_RETURN(const bool invert, json.GetBool("invert", false));
    const auto expression = pattern.Find("Regex");
    if (expression && expression->value().is_string() && behavior == SplitBehavior::kIsolated && !invert) {
      if (auto groups = DigitGroups(expression->value().get_ref<const std::string&>())) {
        Add(std::move(groups));
        return absl::OkStatus();
      }
    }
    BATON_ASSIGN_OR_RETURN(Regex regex, LoadPattern(pattern));
    Add(std::make_unique<SplitPreTokenizer>(std::move(regex), behavior, invert));
    return absl::OkStatus();
  }

  void Add(std::unique_ptr<PreTokenizer> step) {
    chain.push_back(has_byte_level ? std::make_unique<ByteAlphabetPreTokenizer>(std::move(step)) : std::move(step));
  }

  absl::Status AddSplit(std::string_view pattern, SplitBehavior behavior, bool invert) {
    BATON_ASSIGN_OR_RETURN(Regex regex, Regex::Compile(pattern, Regex::Syntax::kPattern));
    Add(std::make_unique<SplitPreTokenizer>(std::move(regex), behavior, invert));
    return absl::OkStatus();
  }

  absl::Status LoadDigits(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const bool individual, json.GetBool("individual_digits", false));
    return AddSplit(R"(\p{N})", individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false);
  }

  absl::Status LoadPunctuation(const JsonNode& json) {
    SplitBehavior behavior = SplitBehavior::kIsolated;
    if (const auto name = json.Find("behavior")) {
      BATON_ASSIGN_OR_RETURN(behavior, BehaviorFromName(*name));
    }
    // Hugging Face counts ASCII symbols as punctuation.
    return AddSplit(R"([\p{P}$+<=>^`|~])", behavior, false);
  }

  absl::Status LoadMetaspace(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const Metaspace metaspace, ReadMetaspace(json));
    BATON_ASSIGN_OR_RETURN(const bool split, json.GetBool("split", true));
    chain.push_back(std::make_unique<MetaspacePreTokenizer>(metaspace, split));
    return absl::OkStatus();
  }

  absl::Status LoadByteLevel(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const bool add_prefix_space, json.GetBool("add_prefix_space", true));
    BATON_ASSIGN_OR_RETURN(const bool use_regex, json.GetBool("use_regex", true));
    if (add_prefix_space) chain.push_back(std::make_unique<PrefixSpacePreTokenizer>());
    if (use_regex) BATON_RETURN_IF_ERROR(AddSplit(kGpt2Pattern, SplitBehavior::kIsolated, false));
    has_byte_level = true;
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<PreTokenizers> LoadPreTokenizers(const std::optional<JsonNode>& json) {
  Loader loader;
  if (json) BATON_RETURN_IF_ERROR(loader.Load(*json));
  return PreTokenizers{std::move(loader.chain), loader.has_byte_level};
}

}  // namespace baton

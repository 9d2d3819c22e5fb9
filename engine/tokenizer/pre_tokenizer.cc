#include "engine/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/tokenizer/json_node.h"
#include "engine/tokenizer/regex.h"
#include "engine/tokenizer/utf8.h"

namespace baton {
namespace {

// What ByteLevel splits by with use_regex, from GPT-2.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// What becomes of the matches of a Split.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Part {
  size_t begin;
  size_t end;
  bool is_match;
};

// All of `text` in parts, matches and what lies between them.
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
    // An empty match divides the text where it stands; the search goes on a code point later.
    if (match->end == match->begin) from += from < text.size() ? ReadUtf8(text.substr(from)).length : 1;
  }
  if (done < text.size()) parts.push_back({done, text.size(), invert});
  return absl::OkStatus();
}

void Join(SplitBehavior behavior, std::vector<Part>& parts) {
  size_t kept = 0;
  const auto merge_or_keep = [&](const Part& part, bool merge) {
    if (merge) {
      parts[kept - 1].end = part.end;
      parts[kept - 1].is_match = part.is_match;
    } else {
      parts[kept++] = part;
    }
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part part = parts[i];
    const Part* previous = kept > 0 ? &parts[kept - 1] : nullptr;
    switch (behavior) {
      case SplitBehavior::kIsolated:
        merge_or_keep(part, false);
        break;
      case SplitBehavior::kRemoved:
        if (!part.is_match) merge_or_keep(part, false);
        break;
      case SplitBehavior::kContiguous:
        merge_or_keep(part, previous != nullptr && previous->is_match == part.is_match);
        break;
      case SplitBehavior::kMergedWithPrevious:
        // The first of several matches in a row joins what is before it; the others stand alone.
        merge_or_keep(part, part.is_match && previous != nullptr && !previous->is_match);
        break;
      case SplitBehavior::kMergedWithNext:
        // Likewise from the right: the last match in a row joins what is after it.
        merge_or_keep(part, !part.is_match && previous != nullptr && previous->is_match);
        break;
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

// Puts a space before every piece that does not start with one.
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

absl::StatusOr<SplitBehavior> BehaviorFromName(const JsonNode& json) {
  BATON_ASSIGN_OR_RETURN(const std::string_view name, json.String());
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return json.Unsupported(Concat("behavior '", name, "'"));
}

absl::StatusOr<Regex> LoadPattern(const JsonNode& json) {
  if (const auto literal = json.Find("String")) {
    BATON_ASSIGN_OR_RETURN(const std::string_view text, literal->String());
    return Regex::Compile(text, Regex::Syntax::kLiteral);
  }
  if (!json.Find("Regex")) return json.Expected("an object with 'Regex' or 'String'");
  BATON_ASSIGN_OR_RETURN(const std::string_view pattern, json.GetString("Regex"));
  absl::StatusOr<Regex> regex = Regex::Compile(pattern, Regex::Syntax::kPattern);
  if (regex.ok()) return regex;
  return absl::InvalidArgumentError(Concat(json.path(), ".Regex: ", regex.status().message()));
}

// A chain under construction.
struct Loader {
  std::vector<std::unique_ptr<PreTokenizer>> chain;
  bool has_byte_level = false;

  absl::Status Load(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const std::string_view type, json.GetString("type"));
    if (type == "Sequence") return LoadSequence(json);
    // After ByteLevel a pre-tokenizer would see the letters of the byte alphabet, not the text.
    if (has_byte_level) return json.Unsupported(Concat("pre-tokenizer '", type, "' after ByteLevel"));
    if (type == "Split") return LoadSplit(json);
    if (type == "ByteLevel") return LoadByteLevel(json);
    return json.Unsupported(Concat("pre-tokenizer '", type, "'"));
  }

  absl::Status LoadSequence(const JsonNode& json) {
    BATON_ASSIGN_OR_RETURN(const JsonNode list, json.Get("pretokenizers"));
    BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, list.Items());
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
    BATON_ASSIGN_OR_RETURN(Regex regex, LoadPattern(pattern));
    BATON_ASSIGN_OR_RETURN(const JsonNode behavior_name, json.Get("behavior"));
    BATON_ASSIGN_OR_RETURN(const SplitBehavior behavior, BehaviorFromName(behavior_name));
    BATON_ASSIGN_OR_RETURN(const bool invert, json.GetBool("invert", false));
    chain.push_back(std::make_unique<SplitPreTokenizer>(std::move(regex), behavior, invert));
    return absl::OkStatus();
  }

  absl::Status LoadByteLevel(const JsonNode& json) {
    has_byte_level = true;
    BATON_ASSIGN_OR_RETURN(const bool add_prefix_space, json.GetBool("add_prefix_space", true));
    BATON_ASSIGN_OR_RETURN(const bool use_regex, json.GetBool("use_regex", true));
    if (add_prefix_space) chain.push_back(std::make_unique<PrefixSpacePreTokenizer>());
    if (use_regex) {
      BATON_ASSIGN_OR_RETURN(Regex regex, Regex::Compile(kGpt2Pattern, Regex::Syntax::kPattern));
      chain.push_back(std::make_unique<SplitPreTokenizer>(std::move(regex), SplitBehavior::kIsolated, false));
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<PreTokenizer>>> LoadPreTokenizers(const std::optional<JsonNode>& json) {
  Loader loader;
  if (json) BATON_RETURN_IF_ERROR(loader.Load(*json));
  if (!loader.has_byte_level) {
    return absl::UnimplementedError(
        "tokenizer.json: pre_tokenizer: a pre-tokenizer without ByteLevel (a vocabulary that is not byte-level) is not "
        "supported");
  }
  return std::move(loader.chain);
}

}  // namespace baton

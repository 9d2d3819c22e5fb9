// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/post_processor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/vocabulary.h"

namespace baton {
namespace {

absl::StatusOr<std::vector<TokenId>> LoadSpecialTokenIds(const JsonNode& processor, std::string_view name,
                                                         const Vocabulary& vocabulary) {
  BATON_ASSIGN_OR_RETURN(const JsonNode special_tokens, processor.Get("special_tokens"));
  BATON_ASSIGN_OR_RETURN(const JsonNode special_token, special_tokens.Get(name));
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, special_token.GetItems("ids"));
  std::vector<TokenId> ids;
  for (const JsonNode& item : items) {
    BATON_ASSIGN_OR_RETURN(const int64_t id, item.Integer(0, Vocabulary::kMaxSize - 1));
    ids.push_back(static_cast<TokenId>(id));
    if (!vocabulary.Contains(ids.back())) return item.Expected("an id of the vocabulary");
  }
  return ids;
}

// The field `single` is [{SpecialToken: {id}}..., {Sequence: {id: "A"}}, {SpecialToken: {id}}...], where Sequence A is
// the text.
absl::Status LoadTemplate(const JsonNode& json, const Vocabulary& vocabulary, PostProcessor& out) {
  BATON_ASSIGN_OR_RETURN(const JsonNode single, json.Get("single"));
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, single.Items());
  PostProcessor added;
  bool after_text = false;
  for (const JsonNode& item : items) {
    if (const auto sequence = item.Find("Sequence")) {
      BATON_ASSIGN_OR_RETURN(const std::string_view id, sequence->GetString("id"));
      if (id != "A" || after_text) return sequence->Unsupported(Concat("sequence '", id, "' at this position"));
      after_text = true;
      continue;
    }
    BATON_ASSIGN_OR_RETURN(const JsonNode special, item.Get("SpecialToken"));
    BATON_ASSIGN_OR_RETURN(const std::string_view name, special.GetString("id"));
    BATON_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, LoadSpecialTokenIds(json, name, vocabulary));
    std::vector<TokenId>& side = after_text ? added.suffix : added.prefix;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!after_text) return absl::InvalidArgumentError(Concat(single.path(), ": expected a Sequence 'A', got none"));
  out.prefix.insert(out.prefix.begin(), added.prefix.begin(), added.prefix.end());
  out.suffix.insert(out.suffix.end(), added.suffix.begin(), added.suffix.end());
  return absl::OkStatus();
}

absl::Status LoadInto(const JsonNode& json, const Vocabulary& vocabulary, bool nested, PostProcessor& out) {
  BATON_ASSIGN_OR_RETURN(const std::string_view type, json.GetString("type"));
  if (type == "ByteLevel") return absl::OkStatus();  // changes offsets only, which Baton does not use
  if (type == "TemplateProcessing") return LoadTemplate(json, vocabulary, out);
  if (type != "Sequence" || nested) return json.Unsupported(Concat("post-processor '", type, "'"));
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, json.GetItems("processors"));
  for (const JsonNode& item : items) BATON_RETURN_IF_ERROR(LoadInto(item, vocabulary, true, out));
  return absl::OkStatus();
}

}  // namespace

void PostProcessor::AddSpecialTokens(std::vector<TokenId>& ids) const {
  const bool has_prefix = ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  if (!has_prefix) ids.insert(ids.begin(), prefix.begin(), prefix.end());
  ids.insert(ids.end(), suffix.begin(), suffix.end());
}

absl::StatusOr<PostProcessor> LoadPostProcessor(const std::optional<JsonNode>& json, const Vocabulary& vocabulary) {
  PostProcessor processor;
  if (json) BATON_RETURN_IF_ERROR(LoadInto(*json, vocabulary, false, processor));
  return processor;
}

}  // namespace baton

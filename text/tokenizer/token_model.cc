// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/token_model.h"

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/unigram.h"

namespace baton {

absl::StatusOr<std::unique_ptr<const TokenModel>> LoadTokenModel(const JsonNode& json, const TokenDecoder& decoder,
                                                                 Vocabulary& vocabulary) {
  BATON_ASSIGN_OR_RETURN(const std::string_view type, json.GetString("type"));
  if (type == "BPE") return Bpe::Load(json, decoder, vocabulary);
  if (type == "Unigram") return Unigram::Load(json, decoder, vocabulary);
  return json.Unsupported(Concat("model '", type, "'"));
}

}  // namespace baton

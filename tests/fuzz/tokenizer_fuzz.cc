// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, and texts for those that load: what follows the first NUL of the input.
#include <algorithm>
#include <string>

#include "fuzz_input.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  const std::string_view input = fuzz::Text(data, size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  fuzz::CheckRefusal(ParseTokenizerConfig(text).status());
  const auto tokenizer = Tokenizer::Create(input.substr(0, end), "");
  fuzz::CheckRefusal(tokenizer.status());
  if (!tokenizer.ok()) return 0;
  for (const std::string_view encoded : {text, std::string_view("It's 1234 <s> été 東京\n \xFF")}) {
    const auto ids = (*tokenizer)->Encode(encoded, true);
    fuzz::CheckRefusal(ids.status());
    if (!ids.ok()) continue;
    const bool known =
        std::all_of(ids->begin(), ids->end(), [&](TokenId id) { return id >= 0 && id < (*tokenizer)->vocab_size(); });
    fuzz::Check(known, "tokens are in the vocabulary");
    fuzz::CheckRefusal((*tokenizer)->Decode(*ids, false).status());
  }
  return 0;
}

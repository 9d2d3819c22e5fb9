// SPDX-License-Identifier: Apache-2.0
// The bodies of OpenAI's completions API, as vLLM, SGLang and llama.cpp's server speak it: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/load/load_target.h"

namespace baton {

struct CompletionOptions {
  bool wants_token_ids = false;  // asks for the answer's token ids, which vLLM can return
};

// Returns a request's JSON body: a streamed answer of exactly output_tokens tokens, and usage at its end.
std::string CompletionBody(const LoadRequest& request, const CompletionOptions& options);

// One event of a streamed answer.
struct CompletionEvent {
  bool has_choice = false;
  bool has_text = false;   // of the choice; a token may have no text
  bool is_finish = false;  // the choice has a finish_reason
  std::vector<int32_t> token_ids = {};
  struct Usage {
    uint32_t prompt_tokens = 0;
    uint32_t cached_tokens = 0;
    int completion_tokens = 0;  // so far; 0: not told
  };
  std::optional<Usage> usage = {};
};

// Parses an event's data other than [DONE]. INVALID_ARGUMENT: not an event of this API. UNAVAILABLE: the server
// reports an error, in its own words.
absl::StatusOr<CompletionEvent> ParseCompletionEvent(std::string_view data);

// Returns an HTTP error's message: error.message or message of a JSON body, or else the first 200 bytes of the body.
std::string ErrorMessage(std::string_view body);

// Counts an answer's tokens, event by event: the event's token ids, or else the growth of completion_tokens, if the
// event has usage, or else one. An event that only ends the answer, without text, carries none. If the last usage
// counts more tokens, the missing tokens are spread over the events after the first; if fewer, the last events carry
// none.
class TokenCounter {
 public:
  // Returns the tokens of this event, as far as known.
  int Add(const CompletionEvent& event, SteadyTime at);
  // Returns the arrivals that agree with the last usage. Call once, at the end.
  std::vector<TokenArrival> Finish() &&;

 private:
  std::vector<TokenArrival> arrivals_;
  int counted_ = 0;
  int completion_tokens_ = 0;  // of the last usage; 0: not told
};

// One of a server's models, as the server tells. 0: not told.
struct ServedModel {
  std::string name;
  int64_t context_tokens = 0;  // max_model_len of vLLM and SGLang, meta.n_ctx of llama.cpp's server
  int64_t vocab_size = 0;      // meta.n_vocab of llama.cpp's server
};

// Parses the answer to GET /v1/models. INVALID_ARGUMENT says what was expected.
absl::StatusOr<std::vector<ServedModel>> ParseModels(std::string_view body);

}  // namespace baton

// SPDX-License-Identifier: Apache-2.0
#include "cli/load/completions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "common/strings.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxCount = 1 << 30;

Json ParseObject(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json();
}

// Returns the field of an object, or null.
const Json& Field(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

// Returns a count that the server tells; 0 for anything else.
int64_t Number(const Json& object, const char* name) {
  const Json& value = Field(object, name);
  return value.is_number_integer() ? std::clamp<int64_t>(value.get<int64_t>(), 0, kMaxCount) : 0;
}

std::string Beginning(std::string_view text) {
  constexpr size_t kMaxBytes = 200;
  return text.size() <= kMaxBytes ? std::string(text) : Concat(text.substr(0, kMaxBytes), "...");
}

// Returns the message of an "error" that is an object or a text; empty: none.
std::string MessageOf(const Json& json) {
  const Json& error = Field(json, "error");
  if (error.is_string()) return error.get<std::string>();
  const Json& message = Field(error.is_object() ? error : json, "message");
  if (message.is_string()) return message.get<std::string>();
  return error.is_object() ? error.dump(-1, ' ', false, Json::error_handler_t::replace) : "";
}

}  // namespace

std::string CompletionBody(const LoadRequest& request, const CompletionOptions& options) {
  Json json = {{"model", request.model},
               {"prompt", request.prompt},
               {"max_tokens", request.output_tokens},
               {"min_tokens", request.output_tokens},
               {"ignore_eos", true},
               {"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}};
  if (!request.cache_salt.empty()) json["cache_salt"] = request.cache_salt;
  if (options.wants_token_ids) json["return_token_ids"] = true;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<CompletionEvent> ParseCompletionEvent(std::string_view data) {
  const Json json = ParseObject(data);
  if (json.is_null()) {
    return absl::InvalidArgumentError(Concat("expected an event with a JSON object, got ", Beginning(data)));
  }
  if (!Field(json, "error").is_null()) return absl::UnavailableError(MessageOf(json));
  CompletionEvent event;
  const Json& choices = Field(json, "choices");
  if (!choices.is_array() && !Field(json, "usage").is_object()) {
    return absl::InvalidArgumentError(Concat("expected an event with choices or usage, got ", Beginning(data)));
  }
  if (choices.is_array() && !choices.empty()) {
    const Json& choice = choices.front();
    const Json& text = Field(choice, "text");
    if (!text.is_string()) {
      return absl::InvalidArgumentError(Concat("expected choices[0].text, a text, got ", Beginning(data)));
    }
    event.has_choice = true;
    event.has_text = !text.get_ref<const std::string&>().empty();
    event.is_finish = Field(choice, "finish_reason").is_string();
    for (const Json& id : Field(choice, "token_ids")) {
      if (id.is_number_integer()) event.token_ids.push_back(id.get<int32_t>());
    }
  }
  if (const Json& usage = Field(json, "usage"); usage.is_object()) {
    event.usage = {
        .prompt_tokens = static_cast<uint32_t>(Number(usage, "prompt_tokens")),
        .cached_tokens = static_cast<uint32_t>(Number(Field(usage, "prompt_tokens_details"), "cached_tokens")),
        .completion_tokens = static_cast<int>(Number(usage, "completion_tokens"))};
  }
  return event;
}

std::string ErrorMessage(std::string_view body) {
  const std::string message = MessageOf(ParseObject(body));
  return Beginning(message.empty() ? body : std::string_view(message));
}

int TokenCounter::Add(const CompletionEvent& event, SteadyTime at) {
  int tokens = 0;
  if (!event.token_ids.empty()) {
    tokens = static_cast<int>(event.token_ids.size());
  } else if (event.has_choice && (event.has_text || !event.is_finish)) {
    const bool counts = event.usage && event.usage->completion_tokens > 0;
    tokens = counts ? std::max(event.usage->completion_tokens - counted_, 0) : 1;
  }
  if (event.usage) completion_tokens_ = event.usage->completion_tokens;
  if (tokens > 0) arrivals_.push_back({.at = at, .tokens = tokens});
  counted_ += tokens;
  return tokens;
}

std::vector<TokenArrival> TokenCounter::Finish() && {
  if (completion_tokens_ <= 0 || arrivals_.empty()) return std::move(arrivals_);
  int missing = completion_tokens_ - counted_;
  const size_t first = arrivals_.size() > 1 ? 1 : 0;
  const auto events = static_cast<int>(arrivals_.size() - first);
  for (int i = 0; i < events && missing > 0; ++i) {
    const int share = missing / (events - i);
    arrivals_[first + i].tokens += share;
    missing -= share;
  }
  while (missing < 0 && !arrivals_.empty()) {
    const int removed = std::min(-missing, arrivals_.back().tokens);
    arrivals_.back().tokens -= removed;
    missing += removed;
    if (arrivals_.back().tokens == 0) arrivals_.pop_back();
  }
  return std::move(arrivals_);
}

absl::StatusOr<std::vector<ServedModel>> ParseModels(std::string_view body) {
  const Json json = ParseObject(body);
  const Json& data = Field(json, "data");
  if (!data.is_array()) {
    return absl::InvalidArgumentError(
        Concat("expected a JSON object with data, a list of models, got ", Beginning(body)));
  }
  std::vector<ServedModel> models;
  for (const Json& entry : data) {
    const Json& id = Field(entry, "id");
    if (!id.is_string()) return absl::InvalidArgumentError("expected an id, a text, for each model of data");
    const Json& meta = Field(entry, "meta");
    models.push_back({.name = id.get<std::string>(),
                      .context_tokens = std::max(Number(entry, "max_model_len"), Number(meta, "n_ctx")),
                      .vocab_size = Number(meta, "n_vocab")});
  }
  return models;
}

}  // namespace baton

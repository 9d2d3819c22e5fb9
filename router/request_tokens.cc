// SPDX-License-Identifier: Apache-2.0
// The tokens of a request: the part of the RequestMachine that puts them in order, turns them into text and decides
// where the output ends.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "router/request_machine.h"

namespace baton::router {
namespace {

void FillTokenBytes(const Tokenizer& tokenizer, v1::TokenLogprobs& logprobs) {
  const auto fill = [&](v1::TokenLogprob& entry) {
    entry.set_token(std::string(tokenizer.TokenBytes(entry.token_id())));
  };
  fill(*logprobs.mutable_chosen());
  for (v1::TokenLogprob& entry : *logprobs.mutable_top()) fill(entry);
}

}  // namespace

// Keeps the token until all earlier tokens have come. Both workers' streams may carry the first token.
void RequestMachine::OnToken(const v1::TokenEvent& event) {
  if (state_ != State::kRunning) return;  // the output is complete: drop surplus tokens
  const uint32_t index = event.output_index();
  if (index < output_.size()) {
    if (output_[index] != event.token_id()) Disagree(index, output_[index], event.token_id());
    return;
  }
  if (index >= spec_.sampling.max_tokens()) return;  // drop surplus tokens, which also bounds early_
  const auto [it, added] = early_.emplace(index, event);
  if (!added && it->second.token_id() != event.token_id()) Disagree(index, it->second.token_id(), event.token_id());
}

void RequestMachine::SendReady(SteadyTime now) {
  if (state_ != State::kRunning) return;
  v1::Chunk chunk;
  chunk.set_output_index(static_cast<uint32_t>(output_.size()));
  while (state_ == State::kRunning && !early_.empty() && early_.begin()->first == output_.size()) {
    const v1::TokenEvent event = std::move(early_.begin()->second);
    early_.erase(early_.begin());
    Append(event, chunk);
  }
  // The worker may end the output where the machine sees no end: the model's context is full.
  const bool has_tokens = output_.size() > open_.prior_tokens;
  const std::optional<v1::WorkerFinished>& finished = successor_ ? successor_->finished : open_.finished;
  if (state_ == State::kRunning && finished && early_.empty() && has_tokens) {
    finish_.set_reason(finished->reason());
    if (finished->has_stop_token_id()) finish_.set_stop_token_id(finished->stop_token_id());
    EndOutput(text_.Flush(), finished->reason(), chunk);
  }
  if (!chunk.token_ids().empty()) {
    if (!first_token_) first_token_ = last_token_ = now;
    last_gap_ = now - std::exchange(last_token_, now);
    if (paused_since_) Resume();
    stalled_since_.reset();
    fruitless_ = 0;
    retry_after_ = absl::ZeroDuration();
    avoid_.clear();
  }
  if (!chunk.token_ids().empty() || !chunk.text().empty()) actions_.push_back(action::Send{std::move(chunk)});
  if (state_ == State::kClosing) return BeginClosing(now);
  PromoteSuccessorIfReady();
  if (spec_.pin && failed_migrations_ == 0) BeginMigration();  // after a failure, a wake-up tries again
}

// Reports the pause since the previous attempt.
void RequestMachine::Resume() {
  open_.info.set_pause_seconds(absl::ToDoubleSeconds(last_gap_));
  actions_.push_back(action::Resumed{open_.number, *std::exchange(paused_since_, std::nullopt), last_gap_});
}

void RequestMachine::Append(const v1::TokenEvent& event, v1::Chunk& chunk) {
  const TokenId token = event.token_id();
  output_.push_back(token);
  chunk.add_token_ids(token);
  if (spec_.sampling.has_logprobs()) {
    *chunk.add_logprobs() = event.logprobs();
    FillTokenBytes(tokenizer_, *chunk.mutable_logprobs(chunk.logprobs_size() - 1));
  }
  const bool is_stop = std::binary_search(stop_token_ids_.begin(), stop_token_ids_.end(), token);
  if (is_stop && output_.size() > spec_.sampling.min_tokens()) {
    // A stop token belongs to the output and is counted, but leaves no text.
    finish_.set_stop_token_id(token);
    return EndOutput(text_.Flush(), v1::FINISH_REASON_STOP, chunk);
  }
  TextAssembler::Delta delta = text_.Push(token);
  chunk.mutable_text()->append(delta.text);
  if (delta.stop) return StopAt(*delta.stop);
  if (output_.size() == spec_.sampling.max_tokens()) EndOutput(text_.Flush(), v1::FINISH_REASON_LENGTH, chunk);
}

void RequestMachine::EndOutput(TextAssembler::Delta rest, v1::FinishReason reason, v1::Chunk& chunk) {
  chunk.mutable_text()->append(rest.text);
  if (rest.stop) return StopAt(*rest.stop);
  finish_.set_reason(reason);
  state_ = State::kClosing;
}

// Ends the output and cancels the workers, which know no stop strings and would go on.
void RequestMachine::StopAt(const std::string& stop_string) {
  finish_.set_reason(v1::FINISH_REASON_STOP);
  finish_.set_stop_string(stop_string);
  state_ = State::kClosing;
  CancelDecode(open_);
  // Once the sequence has changed owner, the prefill call ends by itself with the figures of the transfer.
  if (!open_.started()) CancelPrefill(open_);
}

void RequestMachine::Disagree(uint32_t index, TokenId had, TokenId got) {
  actions_.push_back(action::Disagreement{index, had, got});
  Fail(Cause::kInternal, absl::InternalError(absl::StrCat("output token ", index, " came as ", had, " and again as ",
                                                          got, ": workers of one numerics id disagree")));
}

}  // namespace baton::router

// A Sequence is an attempt in progress on one worker: its tokens so far and the pages that hold their KV.
//
// Prefill and decode are the same thing here: tokens beyond kv_tokens are pending, a step computes some of them, and
// the step that computes the last one samples the next. A sequence that decodes has exactly one pending token.
//
// Owned by one engine and used on its thread only.
#pragma once

#include <vector>

#include "engine/kv/page_pool.h"
#include "engine/sampling/sampler.h"
#include "worker/attempt.h"

namespace baton {

class Sequence {
 public:
  explicit Sequence(Attempt attempt);

  const Attempt& attempt() const { return attempt_; }
  const AttemptKey& key() const { return attempt_.key; }

  const std::vector<TokenId>& tokens() const { return tokens_; }
  int pending_tokens() const { return static_cast<int>(tokens_.size()) - kv_tokens_; }
  int kv_tokens() const { return kv_tokens_; }
  uint32_t output_tokens() const { return history_.output_size(); }  // prior output included
  const TokenHistory& history() const { return history_; }

  // `count` of the pending tokens have their KV in the pages now.
  void AdvanceKv(int count) { kv_tokens_ += count; }
  // A new output token, pending.
  void Append(TokenId token);

  const std::vector<PageId>& page_ids() const { return page_ids_; }
  void AddPages(std::vector<PageRef> pages);
  void DropPages();

  // Why `token`, just appended, ends the output, if it does.
  enum class End { kNo, kStop, kLength };
  End EndAfter(TokenId token) const;

 private:
  const Attempt attempt_;
  std::vector<TokenId> tokens_;  // prompt, prior output, new output
  int kv_tokens_ = 0;
  TokenHistory history_;
  std::vector<PageRef> pages_;
  std::vector<PageId> page_ids_;  // of pages_, in position order
};

}  // namespace baton

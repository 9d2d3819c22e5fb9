// A Sequence is an attempt in progress on one worker: its tokens so far and the pages that hold their KV.
//
// Prefill and decode are the same thing here: tokens beyond kv_tokens are pending, a step computes some of them, and
// the step that computes the last one samples the next. A sequence that decodes has exactly one pending token.
//
// Full pages can be shared with sequences that begin with the same tokens, under the names of engine/kv/page_hash.h: a
// sequence takes those that the pool has when it starts and publishes its own once they are complete.
//
// Owned by one engine and used on its thread only.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine/kv/page_pool.h"
#include "engine/sampling/sampler.h"
#include "worker/attempt.h"

namespace baton {

class Sequence {
 public:
  // The pool outlives the sequence.
  Sequence(Attempt attempt, PagePool& pool);
  ~Sequence() { DropPages(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  const Attempt& attempt() const { return attempt_; }
  const AttemptKey& key() const { return attempt_.key; }

  const std::vector<TokenId>& tokens() const { return tokens_; }
  int pending_tokens() const { return static_cast<int>(tokens_.size()) - kv_tokens_; }
  int kv_tokens() const { return kv_tokens_; }
  int cached_tokens() const { return cached_tokens_; }               // of kv_tokens: computed for others
  uint32_t output_tokens() const { return history_.output_size(); }  // prior output included
  const TokenHistory& history() const { return history_; }

  // `count` of the pending tokens have their KV in the pages now.
  void AdvanceKv(int count) { kv_tokens_ += count; }
  // A new output token, pending.
  void Append(TokenId token);

  const std::vector<PageId>& page_ids() const { return page_ids_; }
  void AddPages(std::vector<PageRef> pages);
  // Before anything has been computed; cached tokens are forgotten.
  void DropPages();

  // Of its full pages, prior output included; empty when it shares none.
  std::span<const PageHash> page_names();
  // Sees to it that there are pages for `tokens` tokens; RESOURCE_EXHAUSTED, and takes none, when the pool has too few.
  // The first time published pages are among them, whose tokens need not be computed any more, though not one with the
  // last token that there is: that is always computed.
  absl::Status EnsurePages(int tokens);
  // Looks for published pages once more and lets go of its own in their places: as long as nothing has been computed,
  // and nobody reads them.
  void TakeCached();
  // Publishes the pages that are full by now. Where another sequence was faster, its page takes the place of ours if
  // `replace`, which nobody may read then; else publishing ends there.
  void Publish(bool replace);

  // A page by what it holds and where it is in a sequence.
  struct NamedPage {
    size_t index = 0;
    PageHash name = {};
  };
  // The first page that it could take as it is, if it were published.
  std::optional<NamedPage> FirstMissingPage();
  bool HasPage(const NamedPage& page);

  // Why `token`, just appended, ends the output, if it does.
  enum class End { kNo, kStop, kLength };
  End EndAfter(TokenId token) const;

 private:
  // Names of the pages that may be taken as they are.
  std::span<const PageHash> sharable_names();

  const Attempt attempt_;
  std::vector<TokenId> tokens_;  // prompt, prior output, new output
  int kv_tokens_ = 0;
  int cached_tokens_ = 0;
  TokenHistory history_;
  std::vector<PageRef> pages_;
  std::vector<PageId> page_ids_;  // of pages_, in position order
  PagePool& pool_;
  std::vector<PageHash> names_;  // of full pages, as far as they were asked for
  size_t published_ = 0;         // the first so many of pages_
};

}  // namespace baton

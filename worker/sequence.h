// SPDX-License-Identifier: Apache-2.0
// A Sequence is an attempt in progress on one worker: its tokens so far and the pages that hold their KV.
//
// Prefill and decode do not differ here. Tokens beyond kv_tokens are pending; a step computes pending tokens. The step
// that computes the last pending token samples the next token. A sequence that decodes has exactly one pending token.
//
// Sequences that begin with the same tokens share full pages, under the names of engine/kv/page_hash.h. A sequence
// starts with the published pages of its prefix and publishes its own pages once they are complete.
//
// Used on the engine thread only.
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
  int cached_tokens() const { return cached_tokens_; }               // of kv_tokens: from published pages
  uint32_t output_tokens() const { return history_.output_size(); }  // prior output included
  const TokenHistory& history() const { return history_; }

  // The pages hold the KV of `count` more of the pending tokens now.
  void AdvanceKv(int count) { kv_tokens_ += count; }
  // A new output token, pending.
  void Append(TokenId token);

  const std::vector<PageId>& page_ids() const { return page_ids_; }
  void AddPages(std::vector<PageRef> pages);
  // Releases all pages. Call only before the first step.
  void DropPages();

  // Names of the full pages, prior output included. Empty if the sequence shares no pages.
  std::span<const PageHash> page_names();
  // Names of the pages that may be shared: never the page of the last token, which is always computed.
  std::span<const PageHash> sharable_names();
  // Takes the pages that a sequence starts with. The first `cached` pages hold their tokens' KV.
  void TakePages(SharedPages pages);
  // The next `pages` pages hold their tokens' KV: a tier had them. Publishes these pages.
  void TakeLoaded(int pages);
  // Pages that the tokens need beyond those that the sequence has.
  int missing_pages() const;
  // Replaces the sequence's own pages by pages published meanwhile. Call only before the first step and while nobody
  // reads the pages.
  void TakeCached();
  // Publishes the full pages. If another sequence has published the same content, the published page replaces this
  // sequence's page, which nobody may read; without `replace`, publishing stops at that page.
  void Publish(bool replace);

  // A page by its content and its place in a sequence.
  struct NamedPage {
    size_t index = 0;
    PageHash name = {};
  };
  // Returns the first page that the sequence could take as it is if the page were published.
  std::optional<NamedPage> FirstMissingPage();
  bool HasPage(const NamedPage& page);

  // Returns why `token`, just appended, ends the output; kNo if it does not.
  enum class End { kNo, kStop, kLength };
  End EndAfter(TokenId token) const;

 private:
  const Attempt attempt_;
  std::vector<TokenId> tokens_;  // prompt, prior output, new output
  int kv_tokens_ = 0;
  int cached_tokens_ = 0;
  TokenHistory history_;
  std::vector<PageRef> pages_;
  std::vector<PageId> page_ids_;  // of pages_, in position order
  PagePool& pool_;
  std::vector<PageHash> names_;  // of full pages; extended on demand
  size_t published_ = 0;         // number of pages, from the first on, that are published
};

}  // namespace baton

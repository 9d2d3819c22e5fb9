// SPDX-License-Identifier: Apache-2.0
// A vocabulary given token by token: what the router needs of one, without a model's files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace baton::router {

class FakeTokenizer : public Tokenizer {
 public:
  // Tokens from `first_special` on are special.
  explicit FakeTokenizer(std::vector<std::string> tokens, int first_special = 1 << 30)
      : tokens_(std::move(tokens)), first_special_(first_special) {}

  // Greedy: the longest token that fits. Text that no token begins is an error.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool add_special_tokens) const override {
    std::vector<TokenId> ids;
    if (add_special_tokens && bos()) ids.push_back(*bos());
    while (!text.empty()) {
      TokenId best = -1;
      for (TokenId id = 0; id < vocab_size(); ++id) {
        const std::string& token = tokens_[id];
        if (text.starts_with(token) && !token.empty() && (best < 0 || token.size() > tokens_[best].size())) best = id;
      }
      if (best < 0) return absl::InvalidArgumentError("no token for the text");
      ids.push_back(best);
      text.remove_prefix(tokens_[best].size());
    }
    return ids;
  }

  absl::StatusOr<std::string> Decode(const std::vector<TokenId>& ids, bool skip_special_tokens) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (!(skip_special_tokens && IsSpecial(id))) text += TokenBytes(id);
    }
    return text;
  }

  int vocab_size() const override { return static_cast<int>(tokens_.size()); }
  std::string_view TokenBytes(TokenId id) const override {
    return id >= 0 && id < vocab_size() ? std::string_view(tokens_[id]) : std::string_view();
  }
  bool IsSpecial(TokenId id) const override { return id >= first_special_; }
  std::optional<TokenId> IdOf(std::string_view text) const override {
    for (TokenId id = 0; id < vocab_size(); ++id) {
      if (tokens_[id] == text) return id;
    }
    return std::nullopt;
  }
  std::optional<TokenId> bos() const override { return std::nullopt; }

 private:
  const std::vector<std::string> tokens_;
  const int first_special_;
};

}  // namespace baton::router

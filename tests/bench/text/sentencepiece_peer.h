// SPDX-License-Identifier: Apache-2.0
// SentencePiece, behind a header of its own: its own headers bring a part of Abseil that does not go with ours.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton {

class SentencePiecePeer {
 public:
  // `type` is bpe or unigram. Null when it fails.
  static std::unique_ptr<SentencePiecePeer> Train(const std::string& type, const std::vector<std::string>& lines);
  virtual ~SentencePiecePeer() = default;

  virtual std::vector<int> Encode(const std::string& text) const = 0;

  const std::vector<std::string>& pieces() const { return pieces_; }
  const std::vector<float>& scores() const { return scores_; }
  const std::vector<int32_t>& types() const { return types_; }  // as in GGUF files

 protected:
  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::vector<int32_t> types_;
};

}  // namespace baton

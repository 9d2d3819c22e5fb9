// SPDX-License-Identifier: Apache-2.0
// The text between the stages of tokenization. Added tokens, normalizer and pre-tokenizers each refine a list of
// pieces.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"

namespace baton {

// A part of the text. If `token` is kText, later stages split and encode the text; otherwise the piece is that token.
struct Piece {
  static constexpr TokenId kText = -1;

  std::string_view text;
  TokenId token = kText;
};

// Not thread-safe: each Encode call has its own.
struct Pieces {
  std::vector<Piece> list;
  std::deque<std::string> changed;  // owns the text of pieces that do not point into the input

  // Replaces each piece with token kText by the pieces that `split(text, output)` appends to `output`, a
  // std::vector<Piece>. Returns the first error.
  template <typename Split>
  auto Refine(Split split) -> decltype(split(std::string_view(), list)) {
    std::vector<Piece> refined;
    refined.reserve(list.size() * 2);
    for (const Piece& piece : list) {
      if (piece.token != Piece::kText) {
        refined.push_back(piece);
      } else if (auto status = split(piece.text, refined); !status.ok()) {
        return status;
      }
    }
    list = std::move(refined);
    return {};
  }
};

}  // namespace baton

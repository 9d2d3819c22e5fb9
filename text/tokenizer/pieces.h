// A text on its way to tokens: what every stage before the model takes and gives.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"

namespace baton {

// A part of the text that later stages split further, or a token that it has become.
struct Piece {
  static constexpr TokenId kText = -1;

  std::string_view text;
  TokenId token = kText;
};

// Not thread-safe: one for each call.
struct Pieces {
  std::vector<Piece> list;
  std::deque<std::string> changed;  // owns the text of pieces that are not part of the input

  // Replaces every piece of text by what `split(text, output)` appends to output, a std::vector<Piece>. Returns the
  // first error.
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

// SPDX-License-Identifier: Apache-2.0
// Converts between std::string_view and the distribution's absl::string_view, which is a type of its own.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace baton {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view FromAbsl(absl::string_view text) { return {text.data(), text.size()}; }

namespace strings_internal {
inline absl::string_view Piece(std::string_view text) { return ToAbsl(text); }
template <typename T>
const T& Piece(const T& value) {
  return value;  // NOLINT(bugprone-return-const-ref-from-parameter): used within the caller's expression only
}
}  // namespace strings_internal

// absl::StrCat that also takes std::string_view.
template <typename... T>
std::string Concat(const T&... parts) {
  return absl::StrCat(strings_internal::Piece(parts)...);
}

// absl::StrAppend that also takes std::string_view.
template <typename... T>
void Append(std::string& text, const T&... parts) {
  absl::StrAppend(&text, strings_internal::Piece(parts)...);
}

}  // namespace baton

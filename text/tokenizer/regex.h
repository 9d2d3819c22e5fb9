// SPDX-License-Identifier: Apache-2.0
// Regular expressions over UTF-8, in Oniguruma's syntax (oniguruma.h), matched by PCRE2 with its JIT compiler.
//
// Patterns and texts are untrusted. Find limits backtracking and memory per match, and time per Matcher. The time limit
// stops quadratic patterns, which stay below the other limits. A Regex is immutable and thread-safe; a Matcher is not.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton {

class Regex {
 public:
  struct Span {
    size_t begin;
    size_t end;
  };
  class Matcher;

  enum class Syntax { kPattern, kLiteral };

  // INVALID_ARGUMENT, with offset and reason, when `pattern` is not a valid regular expression. UNIMPLEMENTED names an
  // unsupported construct.
  static absl::StatusOr<Regex> Compile(std::string_view pattern, Syntax syntax);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Searches texts for one Regex. A Matcher can be reused for several texts.
class Regex::Matcher {
 public:
  // `regex` must outlive the matcher.
  explicit Matcher(const Regex& regex);
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Returns the first match that begins at byte `from` or later. `text` is valid UTF-8; `from` is a code point
  // boundary. RESOURCE_EXHAUSTED when the search hits a limit.
  absl::StatusOr<std::optional<Span>> Find(std::string_view text, size_t from);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton

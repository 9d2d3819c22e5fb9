// Regular expressions over UTF-8, by PCRE2 with its JIT compiler.
//
// The patterns are Oniguruma's, as in Hugging Face's tokenizers (oniguruma.h).
//
// A pattern is data from outside and so is the text. Each attempt to match has a limit on backtracking and on memory,
// and each Matcher a limit on time (a backstop: quadratic patterns stay under the other limits for long); past one the
// match fails with RESOURCE_EXHAUSTED.
//
// A Regex is immutable and thread-safe; a Matcher belongs to one thread.
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

  // INVALID_ARGUMENT with the offset and reason when `pattern` is not a regular expression; UNIMPLEMENTED names what in
  // it is not supported.
  static absl::StatusOr<Regex> Compile(std::string_view pattern, Syntax syntax);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Finds the matches in texts, one after the other.
class Regex::Matcher {
 public:
  // `regex` must outlive the matcher.
  explicit Matcher(const Regex& regex);
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // The first match in `text`, which is valid UTF-8, at or after the code point boundary `from`.
  absl::StatusOr<std::optional<Span>> Find(std::string_view text, size_t from);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton

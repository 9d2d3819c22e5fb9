// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/steady_time.h"
#include "common/strings.h"
#include "text/tokenizer/oniguruma.h"
#include "text/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace baton {

namespace pcre {

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* p) const {
    Free(p);
  }
};

}  // namespace pcre

namespace {

// The limit grows with the text: on a long run, ordinary patterns backtrack up to once per byte.
constexpr uint32_t kBacktracksAtLeast = 1'000'000;
constexpr size_t kBacktracksPerByte = 4;
constexpr uint32_t kHeapKib = 64 * 1024;  // for the interpreter, on machines without JIT support
constexpr size_t kJitStackMinBytes = size_t{32} * 1024;
constexpr size_t kJitStackMaxBytes = size_t{4} * 1024 * 1024;
// Start positions per call of pcre2_match. Find checks the time limit between calls.
constexpr size_t kStartsPerCall = 4096;
constexpr int kCallsPerClockCheck = 256;
constexpr absl::Duration kTimeLimit = absl::Seconds(20);

using Code = std::unique_ptr<pcre2_code, pcre::FreeWith<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, pcre::FreeWith<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, pcre::FreeWith<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, pcre::FreeWith<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, pcre::FreeWith<pcre2_jit_stack_free>>;

std::string ErrorText(int code) {
  unsigned char text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Impl {
  Code code;
  // Bitmap of 256 bits: the bytes with which a match can begin. Null when unknown. Owned by `code`.
  const uint8_t* first_bytes = nullptr;
};

Regex::Regex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

absl::StatusOr<Regex> Regex::Compile(std::string_view pattern, Syntax syntax) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  // PCRE2_MULTILINE: in Oniguruma, ^ and $ match at every line.
  const uint32_t options = syntax == Syntax::kLiteral ? PCRE2_UTF | PCRE2_LITERAL | PCRE2_USE_OFFSET_LIMIT
                                                      : PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                                            PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
  std::string source(pattern);
  if (syntax == Syntax::kPattern) {
    BATON_ASSIGN_OR_RETURN(source, PcreFromOniguruma(pattern));
  }
  int error = 0;
  size_t error_offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), options, &error, &error_offset,
                          context.get()));
  if (code == nullptr) {
    return absl::InvalidArgumentError(
        Concat("expected a regular expression, got '", source, "': ", ErrorText(error), " at byte ", error_offset));
  }
  // On failure PCRE2 interprets the pattern, so the result is ignored.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  auto impl = std::make_unique<Impl>();
  pcre2_pattern_info(code.get(), PCRE2_INFO_FIRSTBITMAP, &impl->first_bytes);
  impl->code = std::move(code);
  return Regex(std::move(impl));
}

struct Regex::Matcher::State {
  const pcre2_code* code = nullptr;
  const uint8_t* first_bytes = nullptr;
  MatchContext context;
  MatchData data;
  JitStack jit_stack;
  int calls = 0;
  SteadyTime started = SteadyTime::InfinitePast();  // set by the first OutOfTime that reads the clock

  // Skips bytes that cannot begin a match. Many pieces have no match, and a scan is faster than a call of pcre2_match.
  size_t SkipToCandidate(std::string_view text, size_t from) const {
    if (first_bytes == nullptr) return from;
    const auto can_begin = [this](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return (first_bytes[byte / 8] >> byte % 8 & 1) != 0;
    };
    while (from < text.size() && (IsContinuation(text[from]) || !can_begin(text[from]))) ++from;
    return from;
  }

  bool OutOfTime() {
    if (++calls % kCallsPerClockCheck != 0) return false;
    const SteadyTime now = SteadyTime::Now();
    if (started == SteadyTime::InfinitePast()) started = now;
    return now - started > kTimeLimit;
  }
};

Regex::Matcher::Matcher(const Regex& regex) : state_(std::make_unique<State>()) {
  state_->code = regex.impl_->code.get();
  state_->first_bytes = regex.impl_->first_bytes;
  state_->context.reset(pcre2_match_context_create(nullptr));
  state_->data.reset(pcre2_match_data_create_from_pattern(state_->code, nullptr));
  state_->jit_stack.reset(pcre2_jit_stack_create(kJitStackMinBytes, kJitStackMaxBytes, nullptr));
  if (state_->context == nullptr) return;
  pcre2_set_heap_limit(state_->context.get(), kHeapKib);
  pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->jit_stack.get());
}

Regex::Matcher::~Matcher() = default;

absl::StatusOr<std::optional<Regex::Span>> Regex::Matcher::Find(std::string_view text, size_t from) {
  State& state = *state_;
  if (state.context == nullptr || state.data == nullptr || state.jit_stack == nullptr) {
    return absl::ResourceExhaustedError("no memory to match a regular expression");
  }
  const size_t limit = std::min<size_t>(kBacktracksAtLeast + kBacktracksPerByte * text.size(), UINT32_MAX);
  pcre2_set_match_limit(state.context.get(), static_cast<uint32_t>(limit));
  while (true) {
    if (state.OutOfTime()) {
      return absl::ResourceExhaustedError(
          Concat("a regular expression took over ", absl::FormatDuration(kTimeLimit), " on ", text.size(), " bytes"));
    }
    from = state.SkipToCandidate(text, from);
    // A pattern with first_bytes cannot match the empty text at the end.
    if (state.first_bytes != nullptr && from >= text.size()) return std::nullopt;
    const size_t last_start = from + kStartsPerCall;
    pcre2_set_offset_limit(state.context.get(), last_start);
    const int result = pcre2_match(state.code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                   PCRE2_NO_UTF_CHECK, state.data.get(), state.context.get());
    if (result >= 0) {
      const size_t* offsets = pcre2_get_ovector_pointer(state.data.get());
      // \K can move the start of a match before `from` or behind the end of the match.
      const size_t begin = std::max(offsets[0], from);
      return Span{begin, std::max(begin, offsets[1])};
    }
    if (result != PCRE2_ERROR_NOMATCH) {
      return absl::ResourceExhaustedError(
          Concat("matching a regular expression against ", text.size(), " bytes: ", ErrorText(result)));
    }
    if (last_start >= text.size()) return std::nullopt;
    from = last_start + 1;
    while (from < text.size() && IsContinuation(text[from])) ++from;
  }
}

}  // namespace baton

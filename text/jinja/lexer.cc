// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/lexer.h"

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=",  // longest match first
                                                         "+",  "-",  "/",  "*",  "%",  "~",  "[", "]", "(", ")",
                                                         "{",  "}",  ">",  "<",  "=",  ".",  ":", "|", ",", ";"};

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsAsciiDigit(c); }

// Replaces \r\n and \r by \n and removes one \n at the end, like Jinja.
std::string NormalizeLines(std::string_view source) {
  std::string text = absl::StrReplaceAll(ToAbsl(source), {{"\r\n", "\n"}, {"\r", "\n"}});
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (pos_ < source_.size()) BATON_RETURN_IF_ERROR(LexText());
    Add(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  // How to strip the text before a tag.
  enum class Strip {
    kAll,       // "-": all whitespace
    kNone,      // "+"
    kLineStart  // lstrip_blocks: whitespace between the start of the line and the tag
  };

  std::string_view Rest() const { return source_.substr(pos_); }
  bool At(std::string_view text) const { return Rest().starts_with(text); }

  void Advance(size_t bytes) {
    for (const char c : source_.substr(pos_, bytes)) line_ += c == '\n' ? 1 : 0;
    pos_ += bytes;
  }

  void SkipSpace() {
    while (pos_ < source_.size()) {
      const Utf8Unit unit = ReadUtf8(Rest());
      if (!IsSpace(unit.code_point)) break;
      Advance(unit.length);
    }
  }

  void Add(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
  }

  // Adds the text up to `end`, where a tag begins, after stripping.
  void AddText(size_t end, Strip strip) {
    std::string_view text = source_.substr(pos_, end - pos_);
    const bool starts_line = pos_ == 0 || source_[pos_ - 1] == '\n';
    if (strip == Strip::kAll) {
      text = jinja::Strip(text, std::nullopt, {.left = false, .right = true});
    } else if (strip == Strip::kLineStart) {
      const size_t newline = text.rfind('\n');
      const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      const bool is_blank = jinja::Strip(text.substr(line_start), std::nullopt).empty();
      if (is_blank && (line_start > 0 || starts_line)) text = text.substr(0, line_start);
    }
    if (!text.empty()) Add(TokenKind::kText, std::string(text));
    Advance(end - pos_);
  }

  // `tag` begins with "{%", "{{" or "{#" and an optional sign.
  static Strip StripFromSign(std::string_view tag) {
    const char sign = tag.size() > 2 ? tag[2] : '\0';
    if (sign == '-') return Strip::kAll;
    if (sign == '+' || tag.starts_with("{{")) return Strip::kNone;
    return Strip::kLineStart;
  }

  absl::Status LexText() {
    size_t tag = source_.find('{', pos_);
    while (tag != std::string_view::npos && source_.substr(tag + 1).find_first_of("{%#") != 0) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string_view::npos) {
      AddText(source_.size(), Strip::kNone);
      return absl::OkStatus();
    }
    AddText(tag, StripFromSign(source_.substr(tag)));
    if (const std::optional<size_t> raw = MatchBareTag("raw", /*trims_newline=*/false)) {
      Advance(*raw);
      return LexRaw();
    }
    const char opener = source_[pos_ + 1];
    const char sign = pos_ + 2 < source_.size() ? source_[pos_ + 2] : '\0';
    const int line = line_;
    Advance(sign == '-' || sign == '+' ? 3 : 2);
    if (opener == '#') return SkipComment(line);
    Add(opener == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, {});
    return LexTag(opener == '%', line);
  }

  // Returns the length of "{% name %}" at pos_, including the whitespace that the end of the tag strips. Returns
  // nullopt when something else is at pos_.
  std::optional<size_t> MatchBareTag(std::string_view name, bool trims_newline) {
    Lexer ahead(source_);
    ahead.pos_ = pos_;
    if (!ahead.At("{%")) return std::nullopt;
    ahead.Advance(ahead.At("{%-") || ahead.At("{%+") ? 3 : 2);
    ahead.SkipSpace();
    if (!ahead.At(name)) return std::nullopt;
    ahead.Advance(name.size());
    ahead.SkipSpace();
    if (!trims_newline && ahead.At("+%}")) return std::nullopt;  // Jinja takes "+%}" after endraw, not after raw
    if (!ahead.SkipTagEnd("%}", trims_newline)) return std::nullopt;
    return ahead.pos_ - pos_;
  }

  // Skips "-%}" with all following whitespace, "+%}", or "%}" with one line feed if `trims_newline`. Returns false when
  // pos_ is not at the end of a tag.
  bool SkipTagEnd(std::string_view end, bool trims_newline) {
    const bool strips = At("-");
    const bool has_sign = strips || At("+");
    if (!Rest().substr(has_sign ? 1 : 0).starts_with(end)) return false;
    Advance((has_sign ? 1 : 0) + end.size());
    if (strips) SkipSpace();
    if (!has_sign && trims_newline && At("\n")) Advance(1);
    return true;
  }

  absl::Status LexRaw() {
    const int line = line_;
    const size_t begin = pos_;
    for (size_t at = source_.find("{%", pos_); at != std::string_view::npos; at = source_.find("{%", at + 1)) {
      pos_ = at;
      const std::optional<size_t> length = MatchBareTag("endraw", /*trims_newline=*/true);
      pos_ = begin;
      if (!length) continue;
      AddText(at, StripFromSign(source_.substr(at)));
      Advance(*length);
      return absl::OkStatus();
    }
    return SyntaxError(line, "missing end of raw directive");
  }

  absl::Status SkipComment(int line) {
    const size_t begin = pos_;
    const size_t end = source_.find("#}", pos_);
    if (end == std::string_view::npos) return SyntaxError(line, "missing end of comment tag");
    const bool has_sign = end > begin && (source_[end - 1] == '-' || source_[end - 1] == '+');
    Advance((has_sign ? end - 1 : end) - begin);
    SkipTagEnd("#}", /*trims_newline=*/true);
    return absl::OkStatus();
  }

  // Lexes up to the end of a {% %} or {{ }} that began on `line`. Within brackets, "}}" and "%}" do not end the tag.
  absl::Status LexTag(bool is_block, int line) {
    std::string brackets;  // the expected closing brackets, innermost last
    while (true) {
      SkipSpace();
      if (pos_ == source_.size())
        return SyntaxError(line, Concat("expected \"", is_block ? "%}" : "}}", "\", got the end of the template"));
      if (brackets.empty() && AtTagEnd(is_block)) {
        Add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, {});
        SkipTagEnd(is_block ? "%}" : "}}", /*trims_newline=*/is_block);
        return absl::OkStatus();
      }
      BATON_RETURN_IF_ERROR(LexToken());
      if (tokens_.back().kind == TokenKind::kOperator) {
        BATON_RETURN_IF_ERROR(Balance(tokens_.back().text, brackets));
      }
    }
  }

  bool AtTagEnd(bool is_block) const { return is_block ? At("%}") || At("-%}") || At("+%}") : At("}}") || At("-}}"); }

  absl::Status Balance(std::string_view op, std::string& brackets) const {
    if (op == "(") brackets.push_back(')');
    if (op == "[") brackets.push_back(']');
    if (op == "{") brackets.push_back('}');
    if (op != ")" && op != "]" && op != "}") return absl::OkStatus();
    if (brackets.empty()) return SyntaxError(line_, Concat("unexpected '", op, "'"));
    if (brackets.back() != op[0]) {
      return SyntaxError(line_, Concat("unexpected '", op, "', expected '", std::string(1, brackets.back()), "'"));
    }
    brackets.pop_back();
    return absl::OkStatus();
  }

  absl::Status LexToken() {
    const char c = source_[pos_];
    if (IsNameStart(c)) {
      size_t length = 1;
      while (pos_ + length < source_.size() && IsNamePart(source_[pos_ + length])) ++length;
      Add(TokenKind::kName, std::string(Rest().substr(0, length)));
      Advance(length);
      return absl::OkStatus();
    }
    if (IsAsciiDigit(c)) return LexNumber();
    if (c == '"' || c == '\'') return LexString(c);
    for (const std::string_view op : kOperators) {
      if (!At(op)) continue;
      Add(TokenKind::kOperator, std::string(op));
      Advance(op.size());
      return absl::OkStatus();
    }
    return SyntaxError(line_, Concat("unexpected character '", Rest().substr(0, ReadUtf8(Rest()).length), "'"));
  }

  // Returns the end of the digits at `at`, which may have single underscores between them.
  size_t EndOfDigits(size_t at) const {
    while (at < source_.size() && IsAsciiDigit(source_[at])) {
      ++at;
      if (at + 1 < source_.size() && source_[at] == '_' && IsAsciiDigit(source_[at + 1])) ++at;
    }
    return at;
  }

  absl::Status LexNumber() {
    size_t end = EndOfDigits(pos_);
    bool is_float = false;
    // In x.0.1 the digits after a dot are an index, not a float.
    const bool after_dot = pos_ > 0 && source_[pos_ - 1] == '.';
    if (!after_dot) {
      if (end + 1 < source_.size() && source_[end] == '.' && IsAsciiDigit(source_[end + 1])) {
        end = EndOfDigits(end + 1);
        is_float = true;
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        size_t exponent = end + 1;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
        if (const size_t exponent_end = EndOfDigits(exponent); exponent_end > exponent) {
          end = exponent_end;
          is_float = true;
        }
      }
    }
    const std::string digits = absl::StrReplaceAll(ToAbsl(source_.substr(pos_, end - pos_)), {{"_", ""}});
    Token token{.kind = is_float ? TokenKind::kFloat : TokenKind::kInteger, .line = line_, .text = digits};
    const bool valid = is_float ? absl::SimpleAtod(digits, &token.number) : absl::SimpleAtoi(digits, &token.integer);
    const bool leading_zero = !is_float && digits.size() > 1 && digits[0] == '0';
    if (leading_zero) return SyntaxError(line_, Concat("number ", digits, ": expected no leading zero"));
    if (!valid) return SyntaxError(line_, Concat("number ", digits, ": expected at most 64 bits"));
    if (end < source_.size() && IsNamePart(source_[end])) {
      return SyntaxError(line_, Concat("number ", digits, ": expected no letter behind it"));
    }
    tokens_.push_back(std::move(token));
    Advance(end - pos_);
    return absl::OkStatus();
  }

  absl::Status LexString(char quote) {
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return SyntaxError(line_, "expected a closing quote, got the end of the template");
    absl::StatusOr<std::string> value = UnescapeString(source_.substr(pos_ + 1, end - pos_ - 1));
    if (!value.ok()) return SyntaxError(line_, FromAbsl(value.status().message()));
    Add(TokenKind::kString, *std::move(value));
    Advance(end + 1 - pos_);
    return absl::OkStatus();
  }

  const std::string_view source_;
  size_t pos_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source) {
  const std::string text = NormalizeLines(source);
  return Lexer(text).Run();
}

absl::Status SyntaxError(int line, std::string_view what) {
  return absl::InvalidArgumentError(Concat("chat template, line ", line, ": ", what));
}

}  // namespace baton::jinja

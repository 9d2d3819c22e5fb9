// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/text.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <optional>

#include "text/utf8.h"

namespace baton::jinja {
namespace {

using CaseMapping = void (*)(icu::StringPiece, icu::ByteSink&, UErrorCode&);

std::string Mapped(std::string_view text, CaseMapping map) {
  std::string result;
  icu::StringByteSink<std::string> sink(&result, static_cast<int32_t>(text.size()));
  UErrorCode error = U_ZERO_ERROR;
  map({text.data(), static_cast<int32_t>(text.size())}, sink, error);
  return U_SUCCESS(error) ? result : std::string(text);
}

// Converts one code point.
std::string ToTitle(std::string_view character) {
  return Mapped(character, [](icu::StringPiece from, icu::ByteSink& to, UErrorCode& error) {
    icu::CaseMap::utf8ToTitle("", U_TITLECASE_WHOLE_STRING | U_TITLECASE_NO_BREAK_ADJUSTMENT, nullptr, from, to,
                              nullptr, error);
  });
}

// Converts a text to lower case and returns the result code point by code point. The whole text is converted at once,
// because the lower case of Σ depends on the text around it.
class LowerCase {
 public:
  explicit LowerCase(std::string_view text) : lower_(ToLower(text)) {}

  // Returns the lower case of the next code point, which must be `character`.
  std::string_view Next(std::string_view character) {
    // The length does not depend on the context: σ and ς have two bytes each.
    const size_t length = character.size() == 1 ? 1 : ToLower(character).size();
    const std::string_view next = std::string_view(lower_).substr(done_, length);
    done_ += next.size();
    return next;
  }

 private:
  const std::string lower_;
  size_t done_ = 0;
};

// Converts a code point to title case when starts_word(previous code point, or nullopt) holds, otherwise to lower case.
template <typename StartsWord>
std::string Title(std::string_view text, StartsWord starts_word) {
  std::string result;
  result.reserve(text.size());
  LowerCase lower(text);
  std::optional<char32_t> before;
  while (!text.empty()) {
    const Utf8Unit unit = ReadUtf8(text);
    const std::string_view character = text.substr(0, unit.length);
    const std::string_view in_lower_case = lower.Next(character);
    if (starts_word(before)) {
      result += ToTitle(character);
    } else {
      result += in_lower_case;
    }
    before = unit.code_point;
    text.remove_prefix(unit.length);
  }
  return result;
}

bool IsCased(char32_t c) { return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED) != 0; }

UNumericType NumericType(char32_t c) {
  return static_cast<UNumericType>(u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_NUMERIC_TYPE));
}

bool IsLineEnd(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

size_t CountSpaces(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    const Utf8Unit unit = ReadUtf8(text);
    count += IsSpace(unit.code_point) ? 1 : 0;
    text.remove_prefix(unit.length);
  }
  return count;
}

std::vector<std::string_view> CodePoints(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    result.push_back(FirstCharacter(text));
    text.remove_prefix(result.back().size());
  }
  return result;
}

size_t ByteOffset(std::string_view text, size_t index) {
  size_t offset = 0;
  while (index > 0 && offset < text.size()) {
    offset += ReadUtf8(text.substr(offset)).length;
    --index;
  }
  return offset;
}

bool IsSpace(char32_t code_point) { return IsWhiteSpace(code_point) || (code_point >= 0x1C && code_point <= 0x1F); }

std::string_view Strip(std::string_view text, std::optional<std::string_view> characters, Sides sides) {
  return StripIf(text, sides, [&](std::string_view character) {
    return characters ? characters->find(character) != std::string_view::npos : IsSpace(ReadUtf8(character).code_point);
  });
}

std::vector<std::string_view> SplitAtWhitespace(std::string_view text, int64_t max_splits, bool from_right) {
  std::vector<std::string_view> parts;
  const Sides near{.left = !from_right, .right = from_right};
  text = Strip(text, std::nullopt, near);
  while (!text.empty()) {
    if (max_splits >= 0 && parts.size() == static_cast<size_t>(max_splits)) {
      parts.push_back(text);
      break;
    }
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view character = from_right ? LastCharacter(rest) : FirstCharacter(rest);
      if (IsSpace(ReadUtf8(character).code_point)) break;
      from_right ? rest.remove_suffix(character.size()) : rest.remove_prefix(character.size());
    }
    const size_t length = text.size() - rest.size();
    parts.push_back(from_right ? text.substr(rest.size()) : text.substr(0, length));
    text = Strip(rest, std::nullopt, near);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator, int64_t max_splits,
                                      bool from_right) {
  std::vector<std::string_view> parts;
  while (max_splits < 0 || parts.size() < static_cast<size_t>(max_splits)) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    if (from_right) {
      parts.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    } else {
      parts.push_back(text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t length = 0;
    size_t end_length = 0;
    while (length < text.size() && end_length == 0) {
      const Utf8Unit unit = ReadUtf8(text.substr(length));
      if (!IsLineEnd(unit.code_point)) {
        length += unit.length;
      } else {
        end_length = text.substr(length).starts_with("\r\n") ? 2 : unit.length;
      }
    }
    lines.push_back(text.substr(0, keep_ends ? length + end_length : length));
    text.remove_prefix(length + end_length);
  }
  return lines;
}

std::string ToUpper(std::string_view text) {
  return Mapped(text, [](icu::StringPiece from, icu::ByteSink& to, UErrorCode& error) {
    icu::CaseMap::utf8ToUpper("", 0, from, to, nullptr, error);
  });
}

std::string ToLower(std::string_view text) {
  return Mapped(text, [](icu::StringPiece from, icu::ByteSink& to, UErrorCode& error) {
    icu::CaseMap::utf8ToLower("", 0, from, to, nullptr, error);
  });
}

std::string Capitalize(std::string_view text) {
  return Title(text, [](std::optional<char32_t> before) { return !before; });
}

std::string TitleMethod(std::string_view text) {
  return Title(text, [](std::optional<char32_t> before) { return !before || !IsCased(*before); });
}

std::string TitleFilter(std::string_view text) {
  const auto separates = [](char32_t c) {
    return IsSpace(c) || c == '-' || c == '(' || c == '[' || c == '{' || c == '<';
  };
  std::string result;
  while (!text.empty()) {
    const Utf8Unit first = ReadUtf8(text);
    size_t length = first.length;
    while (length < text.size()) {
      const Utf8Unit unit = ReadUtf8(text.substr(length));
      if (separates(unit.code_point) != separates(first.code_point)) break;
      length += unit.length;
    }
    result += ToUpper(text.substr(0, first.length));
    result += ToLower(text.substr(first.length, length - first.length));
    text.remove_prefix(length);
  }
  return result;
}

bool IsAlpha(char32_t c) { return u_isalpha(static_cast<UChar32>(c)) != 0; }
bool IsDigit(char32_t c) { return NumericType(c) == U_NT_DECIMAL || NumericType(c) == U_NT_DIGIT; }
bool IsNumeric(char32_t c) { return NumericType(c) != U_NT_NONE; }
bool IsUpper(char32_t c) { return u_isUUppercase(static_cast<UChar32>(c)) != 0; }
bool IsLower(char32_t c) { return u_isULowercase(static_cast<UChar32>(c)) != 0; }
bool IsTitle(char32_t c) { return u_istitle(static_cast<UChar32>(c)) != 0; }

bool IsPrintable(char32_t c) {
  return c == ' ' || (U_GET_GC_MASK(static_cast<UChar32>(c)) & (U_GC_C_MASK | U_GC_Z_MASK)) == 0;
}

}  // namespace baton::jinja

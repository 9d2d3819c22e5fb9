#include "engine/tokenizer/jinja/text.h"

#include <algorithm>
#include <clocale>
#include <cwctype>

#include "engine/tokenizer/utf8.h"

namespace baton::jinja {
namespace {

// Unicode's character classes and simple case mappings as the C library has them. Lives as long as the process.
locale_t UnicodeLocale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

char32_t Upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return UnicodeLocale() == nullptr ? c : towupper_l(static_cast<wint_t>(c), UnicodeLocale());
}

char32_t Lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return UnicodeLocale() == nullptr ? c : towlower_l(static_cast<wint_t>(c), UnicodeLocale());
}

template <typename Map>
std::string MapCodePoints(std::string_view text, Map map) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = ReadUtf8(text);
    AppendUtf8(map(unit.code_point), result);
    text.remove_prefix(unit.length);
  }
  return result;
}

template <typename StartsWord>
std::string Title(std::string_view text, StartsWord starts_word_after) {
  bool starts_word = true;
  return MapCodePoints(text, [&](char32_t c) {
    const char32_t mapped = starts_word ? Upper(c) : Lower(c);
    starts_word = starts_word_after(c);
    return mapped;
  });
}

bool IsLineEnd(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

size_t LastBegin(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

}  // namespace

size_t CountCodePoints(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

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
    result.push_back(text.substr(0, ReadUtf8(text).length));
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
  const auto strips = [&](std::string_view character) {
    return characters ? characters->find(character) != std::string_view::npos : IsSpace(ReadUtf8(character).code_point);
  };
  while (sides.left && !text.empty()) {
    const std::string_view first = text.substr(0, ReadUtf8(text).length);
    if (!strips(first)) break;
    text.remove_prefix(first.size());
  }
  while (sides.right && !text.empty()) {
    const std::string_view last = text.substr(LastBegin(text));
    if (!strips(last)) break;
    text.remove_suffix(last.size());
  }
  return text;
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
      const size_t begin = from_right ? LastBegin(rest) : 0;
      const Utf8Unit unit = ReadUtf8(rest.substr(begin));
      if (IsSpace(unit.code_point)) break;
      from_right ? rest.remove_suffix(unit.length) : rest.remove_prefix(unit.length);
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

std::string ToUpper(std::string_view text) { return MapCodePoints(text, Upper); }
std::string ToLower(std::string_view text) { return MapCodePoints(text, Lower); }

std::string Capitalize(std::string_view text) {
  return Title(text, [](char32_t) { return false; });
}

std::string TitleMethod(std::string_view text) {
  return Title(text, [](char32_t c) { return !IsUpper(c) && !IsLower(c); });
}

std::string TitleFilter(std::string_view text) {
  return Title(text, [](char32_t c) { return IsSpace(c) || c == '-' || c == '(' || c == '[' || c == '{' || c == '<'; });
}

bool IsAlpha(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return UnicodeLocale() != nullptr && iswalpha_l(static_cast<wint_t>(c), UnicodeLocale()) != 0;
}
bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }
bool IsUpper(char32_t c) { return Lower(c) != c; }
bool IsLower(char32_t c) { return Upper(c) != c; }

}  // namespace baton::jinja

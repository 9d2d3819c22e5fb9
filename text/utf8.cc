// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace baton {
namespace {

// The length of a code point and the range of its second byte, by lead byte (table 3-7 of the Unicode standard). Later
// bytes are always 0x80 to 0xBF.
struct Lead {
  int length = 0;  // 0 for a byte that is no lead byte
  unsigned char second_low = 0x80;
  unsigned char second_high = 0xBF;
};

Lead Classify(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

size_t AsciiPrefix(std::string_view bytes) {
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    if ((word & 0x8080808080808080ULL) != 0) break;
  }
  while (i < bytes.size() && static_cast<unsigned char>(bytes[i]) < 0x80) ++i;
  return i;
}

}  // namespace

Utf8Unit ReadUtf8(std::string_view bytes) {
  const auto lead_byte = static_cast<unsigned char>(bytes[0]);
  if (lead_byte < 0x80) return {Utf8Unit::kCodePoint, 1, lead_byte};
  const Lead lead = Classify(lead_byte);
  if (lead.length == 0) return {Utf8Unit::kInvalid, 1, 0};
  char32_t code_point = lead_byte & (0x7F >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    const auto length = static_cast<unsigned char>(i);
    if (static_cast<size_t>(i) == bytes.size()) return {Utf8Unit::kIncomplete, length, 0};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Unit::kInvalid, length, 0};
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  return {Utf8Unit::kCodePoint, static_cast<unsigned char>(lead.length), code_point};
}

size_t ValidUtf8Prefix(std::string_view bytes) {
  size_t i = AsciiPrefix(bytes);
  while (i < bytes.size()) {
    const Utf8Unit unit = ReadUtf8(bytes.substr(i));
    if (unit.kind != Utf8Unit::kCodePoint) return i;
    i += unit.length;
    if (i < bytes.size() && static_cast<unsigned char>(bytes[i]) < 0x80) i += AsciiPrefix(bytes.substr(i));
  }
  return i;
}

std::string_view RepairUtf8(std::string_view text, std::string& storage) {
  if (ValidUtf8Prefix(text) == text.size()) return text;
  storage.clear();
  storage.reserve(text.size() + 16);
  if (AppendRepairedUtf8(text, storage) != text.size()) storage += kReplacementCharacter;
  return storage;
}

size_t AppendRepairedUtf8(std::string_view bytes, std::string& out) {
  size_t i = 0;
  while (i < bytes.size()) {
    const size_t valid = ValidUtf8Prefix(bytes.substr(i));
    out.append(bytes.substr(i, valid));
    i += valid;
    if (i == bytes.size()) break;
    const Utf8Unit unit = ReadUtf8(bytes.substr(i));
    if (unit.kind == Utf8Unit::kIncomplete) break;
    out.append(kReplacementCharacter);
    i += unit.length;
  }
  return i;
}

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t CountCodePoints(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); });
}

std::string_view FirstCharacter(std::string_view text) { return text.substr(0, ReadUtf8(text).length); }

std::string_view LastCharacter(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && IsContinuation(text[begin])) --begin;
  return text.substr(begin);
}

std::string_view StripWhiteSpace(std::string_view text, Sides sides) {
  return StripIf(text, sides, [](std::string_view c) { return IsWhiteSpace(ReadUtf8(c).code_point); });
}

void AppendUtf8(char32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
    return;
  }
  const int more = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;  // bytes after the lead byte
  // The lead byte begins with a one for each byte of the code point, and a zero.
  out.push_back(static_cast<char>((0xF80 >> more) | (code_point >> (6 * more))));
  for (int i = more - 1; i >= 0; --i) out.push_back(static_cast<char>(0x80 | ((code_point >> (6 * i)) & 0x3F)));
}

}  // namespace baton

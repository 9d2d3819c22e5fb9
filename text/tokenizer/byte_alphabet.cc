// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace baton {
namespace {

// GPT-2's bytes_to_unicode: printable Latin-1 bytes map to themselves, the other bytes in order to U+0100 and above.
constexpr bool MapsToItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr char32_t kFirstSubstitute = 0x100;
constexpr char32_t kAlphabetEnd = 0x144;

constexpr std::array<char32_t, 256> CodePoints() {
  std::array<char32_t, 256> code_points{};
  char32_t next = kFirstSubstitute;
  for (int byte = 0; byte < 256; ++byte) code_points[byte] = MapsToItself(byte) ? byte : next++;
  return code_points;
}

constexpr std::array<char32_t, 256> kCodePointOfByte = CodePoints();

// -1 for code points outside the alphabet.
constexpr std::array<int, kAlphabetEnd> Bytes() {
  std::array<int, kAlphabetEnd> bytes{};
  for (int& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) bytes[kCodePointOfByte[byte]] = byte;
  return bytes;
}

constexpr std::array<int, kAlphabetEnd> kByteOfCodePoint = Bytes();

}  // namespace

std::optional<std::string> BytesFromAlphabet(std::string_view word) {
  std::string bytes;
  bytes.reserve(word.size());
  while (!word.empty()) {
    const Utf8Unit unit = ReadUtf8(word);
    if (unit.kind != Utf8Unit::kCodePoint || unit.code_point >= kAlphabetEnd) return std::nullopt;
    const int byte = kByteOfCodePoint[unit.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    word.remove_prefix(unit.length);
  }
  return bytes;
}

std::string AlphabetLetter(unsigned char byte) {
  std::string letter;
  AppendUtf8(kCodePointOfByte[byte], letter);
  return letter;
}

std::string AlphabetFromBytes(std::string_view bytes) {
  std::string word;
  word.reserve(2 * bytes.size());
  for (const char byte : bytes) AppendUtf8(kCodePointOfByte[static_cast<unsigned char>(byte)], word);
  return word;
}

}  // namespace baton

// SPDX-License-Identifier: Apache-2.0
// The alphabet of byte-level vocabularies: one printable code point per byte, so that JSON can hold byte strings. The
// mapping is GPT-2's bytes_to_unicode. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton {

// Decodes `word`. Returns nullopt when `word` has a code point outside the alphabet.
std::optional<std::string> BytesFromAlphabet(std::string_view word);

// Encode one byte and several bytes as UTF-8 text in the alphabet.
std::string AlphabetLetter(unsigned char byte);
std::string AlphabetFromBytes(std::string_view bytes);

}  // namespace baton

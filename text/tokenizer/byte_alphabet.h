// The alphabet in which byte-level vocabularies are written: each byte is one printable code point, so that a
// vocabulary of byte strings is a JSON file of readable words (GPT-2's bytes_to_unicode).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton {

// The bytes that `word` stands for; nullopt when it has a code point outside the alphabet.
std::optional<std::string> BytesFromAlphabet(std::string_view word);

// How the alphabet writes one byte, and several.
std::string AlphabetLetter(unsigned char byte);
std::string AlphabetFromBytes(std::string_view bytes);

}  // namespace baton

// SPDX-License-Identifier: Apache-2.0
// Decodes tokens to text: the `decoder` of tokenizer.json. All supported decoders reduce to two functions: Bytes
// decodes a token, Trimmed strips the start of a decoded sequence.
//
// Immutable after Load, so thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace baton {

class JsonNode;

class TokenDecoder {
 public:
  // Loads ByteLevel, or a Sequence of Replace, ByteFallback, Fuse, Strip and Metaspace. UNIMPLEMENTED names an
  // unsupported decoder.
  static absl::StatusOr<TokenDecoder> Load(const JsonNode& json);

  // The vocabulary is spelled in the byte alphabet (byte_alphabet.h).
  bool is_byte_level() const { return is_byte_level_; }
  // Returns the bytes of a token that tokenizer.json spells `word`.
  std::string Bytes(std::string_view word) const;
  // Strips the start of `text`, the decoded text of a whole sequence.
  std::string_view Trimmed(std::string_view text) const;

 private:
  absl::Status LoadStep(const JsonNode& json, bool is_only);

  bool is_byte_level_ = false;
  bool byte_fallback_ = false;                                     // a token <0xE2> decodes to byte 0xE2
  std::vector<std::pair<std::string, std::string>> replacements_;  // applied to each token, in order
  std::string trimmed_;                                            // stripped from the start of a sequence
  int trims_ = 0;                                                  // at most this many times
};

// "<0xE2>" -> 0xE2. Returns nullopt for other words.
std::optional<unsigned char> ByteOfFallbackToken(std::string_view word);
std::string FallbackToken(unsigned char byte);

}  // namespace baton

// How the tokens of a vocabulary become text again: tokenizer.json's decoder.
//
// Whatever its steps are, they come to two things: the bytes that each token stands for, and what the text of a whole
// sequence loses at its start. Immutable after loading, so thread-safe.
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
  // ByteLevel, or a Sequence of Replace, ByteFallback, Fuse, Strip and Metaspace. UNIMPLEMENTED names what is not
  // supported.
  static absl::StatusOr<TokenDecoder> Load(const JsonNode& json);

  // A vocabulary is written in letters that stand for bytes.
  bool is_byte_level() const { return is_byte_level_; }
  // Of a token that the vocabulary writes `word`.
  std::string Bytes(std::string_view word) const;
  // `text` of a whole sequence without what it loses at its start.
  std::string_view Trimmed(std::string_view text) const;

 private:
  absl::Status LoadStep(const JsonNode& json, bool is_only);

  bool is_byte_level_ = false;
  bool byte_fallback_ = false;                                     // <0xE2> is a byte
  std::vector<std::pair<std::string, std::string>> replacements_;  // in each token
  std::string trimmed_;                                            // one character
  int trims_ = 0;                                                  // at most so many of it
};

// The byte that a token such as <0xE2> stands for.
std::optional<unsigned char> ByteOfFallbackToken(std::string_view word);
std::string FallbackToken(unsigned char byte);

}  // namespace baton

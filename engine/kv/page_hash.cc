#include "engine/kv/page_hash.h"

#include <cassert>
#include <cstddef>

#include "common/sha256.h"

namespace baton {
namespace {

// Little-endian whatever the machine: hashes travel between processes.
template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

std::vector<PageHash> HashPages(std::string_view salt, std::span<const TokenId> tokens, int page_tokens) {
  assert(page_tokens > 0);
  std::vector<PageHash> hashes;
  hashes.reserve(tokens.size() / page_tokens);
  Sha256 hash;
  hash.Add(salt);
  PageHash previous = hash.Finish();
  std::string content;
  while (tokens.size() >= static_cast<size_t>(page_tokens)) {
    content.assign(previous.begin(), previous.end());
    for (const TokenId token : tokens.first(page_tokens)) AppendLittleEndian(static_cast<uint32_t>(token), content);
    hash.Add(content);
    previous = hash.Finish();
    hashes.push_back(previous);
    tokens = tokens.subspan(page_tokens);
  }
  return hashes;
}

std::string PageHashSalt(std::string_view model, std::string_view adapter, std::string_view tenant) {
  std::string salt = "baton page hash 1";
  for (const std::string_view part : {model, adapter, tenant}) {
    AppendLittleEndian(static_cast<uint64_t>(part.size()), salt);
    salt.append(part);
  }
  return salt;
}

}  // namespace baton
